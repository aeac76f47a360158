"""The HTTP server of the bridge: one thread for each connection, of which there are not more than its limits allow."""

from __future__ import annotations

import hmac
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from nightherd.model.agents.mcp import InjectedMcpServerDef, ToolAnswer
from nightherd.runtimes.mcp.bridge_limits import (
    BridgeLimits,
    ByteBudget,
    Incoming,
    TooLongError,
)
from nightherd.runtimes.mcp.injected import Call, NoReply, Reply, understand

CallTool = Callable[[InjectedMcpServerDef, Call], ToolAnswer]
"""Makes a call; called in a thread of its own, and returns when the call is over."""
POLL_S = 0.05
LAST_ANSWERS_S = 2.0
"""How long callers may take to read what they were answered when the bridge closed."""


class BridgeServer(ThreadingHTTPServer):
    """Serves MCP servers by their names on `listener`, to callers that have the token."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        listener: socket.socket,
        servers: Mapping[str, InjectedMcpServerDef],
        token: str,
        call: CallTool,
        limits: BridgeLimits,
    ) -> None:
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        # A caller that is gone before it is accepted must hold up nobody.
        listener.setblocking(False)
        self.socket = listener
        self.server_address = listener.getsockname()
        self.servers = servers
        self.call = call
        self.limits = limits
        self.budget = ByteBudget(limits.total_bytes)
        self._authorization = f"Bearer {token}".encode()
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()

    def is_known(self, authorization: str) -> bool:
        """Whether a caller gave the token."""
        return hmac.compare_digest(authorization.encode(), self._authorization)

    @property
    def is_crowded(self) -> bool:
        """Whether connections that wait for their next request should make room for others."""
        return len(self._open) > self.limits.connections // 2

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; `OSError`, after which this is called again, when there is no room for one."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._open) < self.limits.connections, POLL_S
            ):
                raise BlockingIOError("there are as many connections as there may be")
        try:
            connection, address = super().get_request()
        except BlockingIOError:
            raise
        except OSError:  # no descriptor is left
            time.sleep(POLL_S)
            raise
        connection.setblocking(True)
        with self._changed:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """End a connection, for whatever reason; another one may take its place."""
        super().shutdown_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a caller that disconnected."""

    def close(self) -> None:
        """Accept nothing more and end every connection; calls that were cut off are answered before."""
        self.shutdown()
        self.server_close()
        self._end_connections(socket.SHUT_RD)  # one that waits for a request ends now
        with self._changed:
            self._changed.wait_for(lambda: not self._open, LAST_ANSWERS_S)
        self._end_connections(socket.SHUT_RDWR)

    def _end_connections(self, how: int) -> None:
        with self._changed:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(how)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BridgeServer

    def setup(self) -> None:
        """Read within the limits."""
        super().setup()
        self._incoming = Incoming(self.connection)
        self.rfile.close()
        self.rfile = self._reader = io.BufferedReader(self._incoming)
        self._is_first = True

    def handle_one_request(self) -> None:
        """One request; the connection is closed after it when it exceeds a limit."""
        limits, incoming = self.server.limits, self._incoming
        incoming.allowance = limits.head_bytes
        wait_s = limits.message_s if self._is_first else limits.idle_s
        incoming.deadline = time.monotonic() + wait_s
        self._is_first = False
        try:
            if not self._reader.peek(1):
                self.close_connection = True
                return
            incoming.deadline = time.monotonic() + limits.message_s
            super().handle_one_request()
        except (TimeoutError, TooLongError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Refuse a stream: there are no messages without a request."""
        self._send(HTTPStatus.METHOD_NOT_ALLOWED)

    def do_DELETE(self) -> None:
        """Callers are not remembered, so there is nothing to forget."""
        self._send(HTTPStatus.OK)

    def do_POST(self) -> None:
        """One message of the protocol."""
        server = self.server.servers.get(self.path.strip("/"))
        size = self._size()
        if not self.server.is_known(self.headers.get("authorization", "")):
            self._refuse(HTTPStatus.UNAUTHORIZED)  # what it had to say is not read
        elif server is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        elif size is None:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif not self.server.budget.take(size, self.server.limits.message_s):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            try:
                self._incoming.allowance = size
                self._answer(server, self.rfile.read(size))
            finally:
                self.server.budget.give(size)

    def log_message(self, format: str, *args: object) -> None:
        """The journal says what was called."""

    def _size(self) -> int | None:
        """How long the message is; None when it is too long, or does not say."""
        text = self.headers.get("content-length", "")
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            return None
        size = int(text)
        return size if size <= self.server.limits.message_bytes else None

    def _answer(self, server: InjectedMcpServerDef, body: bytes) -> None:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        match understand(server, message):
            case NoReply():
                self._send(HTTPStatus.ACCEPTED)
            case Reply(reply):
                self._send(HTTPStatus.OK, json.dumps(reply).encode())
            case Call() as call:
                self._stream(server, call)

    def _stream(self, server: InjectedMcpServerDef, call: Call) -> None:
        """The answer of a tool, as an event stream that begins at once."""
        answers: list[ToolAnswer] = []
        is_done = threading.Event()

        def work() -> None:
            try:
                answers.append(self.server.call(server, call))
            finally:
                is_done.set()

        threading.Thread(target=work, name="mcp-call", daemon=True).start()
        try:
            self._begin(HTTPStatus.OK)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while not is_done.wait(self.server.limits.alive_s):
                self._send_chunk(b": still at it\n\n")
        finally:
            # Also when the caller is gone: a call keeps its place among the connections until it is over.
            is_done.wait()
        answer = answers[0] if answers else ToolAnswer(text="the run has ended", is_error=True)
        data = json.dumps(call.answered(answer)).encode()
        self._send_chunk(b"event: message\ndata: " + data + b"\n\n")
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _refuse(self, status: HTTPStatus) -> None:
        """Refuse a request of which something may be unread."""
        self.close_connection = True
        self._send(status)

    def _send(self, status: HTTPStatus, body: bytes = b"") -> None:
        self._begin(status)
        if body:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus) -> None:
        """Begin an answer, which has to be read in time."""
        self.connection.settimeout(self.server.limits.answer_s)
        self.send_response(status)
        if self.close_connection or self.server.is_crowded:
            self.send_header("connection", "close")
