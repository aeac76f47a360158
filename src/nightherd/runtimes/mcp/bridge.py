"""The bridge: injected servers for a program of their own, as MCP over HTTP on the loopback interface.

Only who has the token can call, and only while the run lasts. A call is made in the event loop of whoever
opened the bridge, where its handler belongs; a long one is kept alive by comments in the stream.
"""

from __future__ import annotations

import hmac
import json
import socket
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
from anyio import from_thread, lowlevel, to_thread

from nightherd.host.system import random_text
from nightherd.model.agents.mcp import InjectedMcpServerDef, ToolAnswer
from nightherd.model.ids import RandomText
from nightherd.runtimes.mcp.injected import Call, NoReply, Reply, call_injected, understand

HOST = "127.0.0.1"
TOKEN_LENGTH = 48
LONGEST_REQUEST = 16 * 1024 * 1024
ALIVE_S = 10.0
"""How often a waiting caller gets a sign of life."""


@asynccontextmanager
async def bridged(
    servers: Sequence[InjectedMcpServerDef],
    *,
    random_text: RandomText = random_text,
    listener: socket.socket | None = None,
) -> AsyncIterator[Mapping[str, Mapping[str, Any]]]:
    """Where each of `servers` is to be reached, as Claude's configuration says it; nowhere once this ends.

    What a handler is doing then is cancelled. Callers connect to `listener`, a TCP socket that listens on the
    loopback address of whichever network they are in; without one, to a new one of this machine's. It is closed in the end.
    """
    if not servers:
        if listener is not None:
            listener.close()
        yield {}
        return
    bridge = _Bridge(servers, random_text(TOKEN_LENGTH), listener)
    try:
        yield bridge.entries()
    finally:
        with anyio.CancelScope(shield=True):
            bridge.cancel_calls()
            await to_thread.run_sync(bridge.close)


class _Bridge:
    """A server in threads of its own, and the calls that are being made for it."""

    def __init__(
        self,
        servers: Sequence[InjectedMcpServerDef],
        token: str,
        listener: socket.socket | None,
    ) -> None:
        self.servers = {server.name: server for server in servers}
        self.token = token
        self._loop = lowlevel.current_token()
        self._calls: set[anyio.CancelScope] = set()
        self._is_closed = False
        self._http = _Http((HOST, 0), _Handler, bind_and_activate=listener is None)
        if listener is not None:
            self._http.take(listener)
        self._http.bridge = self
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="mcp-bridge",
            daemon=True,
        )
        self._thread.start()

    def entries(self) -> dict[str, dict[str, Any]]:
        port = self._http.server_address[1]
        return {
            name: {
                "type": "http",
                "url": f"http://{HOST}:{port}/{name}",
                "headers": {"Authorization": f"Bearer {self.token}"},
            }
            for name in self.servers
        }

    def call(self, server: InjectedMcpServerDef, call: Call) -> ToolAnswer:
        """Make a call from another thread; a bridge that closes cuts it off."""
        try:
            return from_thread.run(self._make, server, call, token=self._loop)
        except RuntimeError:  # the loop has ended
            return ToolAnswer(text="the run has ended", is_error=True)

    async def _make(self, server: InjectedMcpServerDef, call: Call) -> ToolAnswer:
        with anyio.CancelScope() as scope:
            if not self._is_closed:
                self._calls.add(scope)
                try:
                    return await call_injected(server, call.tool, call.input)
                finally:
                    self._calls.discard(scope)
        return ToolAnswer(text="the run has ended", is_error=True)

    def cancel_calls(self) -> None:
        self._is_closed = True
        for scope in self._calls:
            scope.cancel()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    bridge: _Bridge

    def take(self, listener: socket.socket) -> None:
        """Accept on `listener`, which listens already."""
        self.socket.close()
        # A caller that is gone before it is accepted must hold up nobody.
        listener.setblocking(False)
        self.socket = listener
        self.server_address = listener.getsockname()

    def get_request(self) -> tuple[socket.socket, Any]:
        request, address = super().get_request()
        request.setblocking(True)
        return request, address

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a caller that disconnected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_GET(self) -> None:
        """Refuse a stream: there are no messages without a request."""
        self._send(405, b"")

    def do_DELETE(self) -> None:
        """Callers are not remembered, so there is nothing to forget."""
        self._send(200, b"")

    def do_POST(self) -> None:
        """One message of the protocol."""
        server = self.server.bridge.servers.get(self.path.strip("/"))
        length = self.headers.get("content-length", "")
        if not self._is_known():
            self.close_connection = True  # what it had to say is not read
            self._send(401, b"")
        elif server is None or not length.isdigit() or int(length) > LONGEST_REQUEST:
            self.close_connection = True
            self._send(404 if server is None else 413, b"")
        else:
            self._answer(server, self.rfile.read(int(length)))

    def log_message(self, format: str, *args: object) -> None:
        """The journal says what was called."""

    def _is_known(self) -> bool:
        given = self.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self.server.bridge.token}".encode())

    def _answer(self, server: InjectedMcpServerDef, body: bytes) -> None:
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        match understand(server, message):
            case NoReply():
                self._send(202, b"")
            case Reply(reply):
                self._send(200, json.dumps(reply).encode())
            case Call() as call:
                self._stream(server, call)

    def _stream(self, server: InjectedMcpServerDef, call: Call) -> None:
        """The answer of a tool, as an event stream that begins at once."""
        answers: list[ToolAnswer] = []
        is_done = threading.Event()

        def work() -> None:
            try:
                answers.append(self.server.bridge.call(server, call))
            finally:
                is_done.set()

        threading.Thread(target=work, name="mcp-call", daemon=True).start()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while not is_done.wait(ALIVE_S):
            self._send_chunk(b": still at it\n\n")
        answer = answers[0] if answers else ToolAnswer(text="the run has ended", is_error=True)
        data = json.dumps(call.answered(answer)).encode()
        self._send_chunk(b"event: message\ndata: " + data + b"\n\n")
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if body:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
