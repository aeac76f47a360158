"""A site on another port of this machine, as an agent's own dev server is, and what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class Visit:
    """A request that the site got."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class HostileSite:
    """Serves what it is given, and the same empty page everywhere else."""

    origin: str
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """By path, the media type and the content."""
    visits: list[Visit] = field(default_factory=list)

    def put(self, path: str, content: str, kind: str = "text/html") -> str:
        """Serve a file; its address."""
        self.files[path] = (kind, content.encode())
        return f"{self.origin}{path}"


PAGE = b"<!doctype html><html lang=en><meta charset=utf-8><link rel=icon href=data:,><title>other</title>"


@contextmanager
def serving_hostile_site(host: str = "127.0.0.1") -> Iterator[HostileSite]:
    """The site, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer()

        def _answer(self) -> None:
            path = self.path.partition("?")[0]
            site.visits.append(Visit(self.command, self.path, dict(self.headers.items())))
            kind, content = site.files.get(path, ("text/html", PAGE))
            self.send_response(200)
            self.send_header("content-type", f"{kind}; charset=utf-8")
            self.send_header("content-length", str(len(content)))
            # So that what the browser leaves out is left out by the policy of the page that asks.
            self.send_header("access-control-allow-origin", "*")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing: what was asked for is in `visits`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        site = HostileSite(f"http://{host}:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
