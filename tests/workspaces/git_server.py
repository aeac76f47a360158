"""A git server on loopback: git's own http-backend, with basic authentication."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PATIENCE_S = 60.0


class GitServer:
    """Serves the bare repositories below `folder`. What it does can be changed between requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.login: tuple[str, str] | None = None
        """Who is let in; None for anybody."""
        self.status: int | None = None
        """The answer to every request, instead of a repository."""
        self.redirect: str | None = None
        """Where every request is sent instead."""
        self.logins: list[str | None] = []
        """What each request had in `Authorization`."""
        self.arrived = threading.Event()
        """Set when a request that is let in has come."""
        self.gate = threading.Event()
        """Such requests wait for it."""
        self.gate.set()
        self.port = 0

    def url(self, name: str, login: str = "") -> str:
        """The address of a repository."""
        return f"http://{login}127.0.0.1:{self.port}/{name}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        given = request.headers["Authorization"]
        self.logins.append(given)
        body = _body(request)
        if self.redirect is not None:
            _reply(request, 302, {"Location": self.redirect + request.path})
            return
        if self.login is not None and given != _basic(*self.login):
            _reply(request, 401, {"WWW-Authenticate": 'Basic realm="git"'})
            return
        self.arrived.set()
        assert self.gate.wait(PATIENCE_S)
        if self.status is not None:
            _reply(request, self.status, {})
            return
        self._run_backend(request, body)

    def _run_backend(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        path, _, query = request.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "GIT_PROJECT_ROOT": str(self.folder),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers["Content-Type"] or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": request.headers["Content-Encoding"] or "",
            "GIT_PROTOCOL": request.headers["Git-Protocol"] or "",
        }
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split(" ")[0])
        _reply(request, status, headers, content)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers["Transfer-Encoding"] != "chunked":
        return request.rfile.read(int(request.headers["Content-Length"] or 0))
    pieces = []
    while size := int(request.rfile.readline(), 16):
        pieces.append(request.rfile.read(size))
        request.rfile.readline()
    return b"".join(pieces)


def _reply(
    request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], content: bytes = b""
) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


@contextmanager
def serving(folder: Path) -> Iterator[GitServer]:
    """Serve until the end of the block."""
    server = GitServer(folder)

    class Handler(BaseHTTPRequestHandler):
        """Passes requests on, and prints nothing."""

        def do_GET(self) -> None:
            server.answer(self)

        def do_POST(self) -> None:
            server.answer(self)

        def log_message(self, *arguments: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        """Says nothing of clients that go away."""

        def handle_error(self, *arguments: object) -> None:
            pass

    listener = Listener(("127.0.0.1", 0), Handler)
    server.port = listener.server_port
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        listener.shutdown()
        thread.join()
        listener.server_close()
