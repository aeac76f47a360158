"""A server on this machine that answers as a test says, and keeps what it got."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Loopback:
    """What the server got, and how it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.hangs = False
        self.bodies: list[bytes] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.asked = threading.Event()
        self.released = threading.Event()
        self.port = 0

    def url(self, host: str = "127.0.0.1", path: str = "/hook") -> str:
        """Where Apprise sends JSON to it."""
        return f"json://{host}:{self.port}{path}"


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve until the test is over; a request that hangs is released then."""
    served = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            served.bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
            served.asked.set()
            if served.hangs:
                served.released.wait(60)
                return
            self.send_response(served.status)
            for name, value in served.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
