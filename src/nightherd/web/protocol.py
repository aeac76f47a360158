"""The protocol of connections: uvicorn's, with an end to those who take forever to ask, or to listen.

A client that opens a connection and says nothing, or sends its headers a byte at a time, is let go, and so
is one that does not take what it asked for. The body of a request is limited by the guard.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from nightherd.web.operations import PEER, PEER_USER
from nightherd.wiring.machine import peer_pid, peer_user

HEAD_PATIENCE_S = 10.0
LISTEN_PATIENCE_S = 60.0


def _with_peer(app: ASGIApp, transport: asyncio.Transport) -> ASGIApp:
    """`app`, whose requests say how to find their sender's process."""

    def find_pid() -> int | None:
        connection = transport.get_extra_info("socket")
        return None if connection is None else peer_pid(connection)

    def find_user() -> str | None:
        connection = transport.get_extra_info("socket")
        return None if connection is None else peer_user(connection)

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, PEER: find_pid, PEER_USER: find_user}, receive, send)

    return call


class PatientProtocol(H11Protocol):
    """Waits only so long for the head of a request, and for room to send more of an answer."""

    head_patience_s = HEAD_PATIENCE_S
    listen_patience_s = LISTEN_PATIENCE_S
    _waiting: asyncio.TimerHandle | None = None
    _held_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a connection."""
        super().connection_made(transport)
        self.app = _with_peer(self.app, transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a closed connection."""
        self._stop_waiting()
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        # Said when it is asked for: no timer runs without requests.
        date = (b"date", formatdate(usegmt=True).encode())
        self.server_state.default_headers = [date, *self.config.encoded_headers]
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def on_response_complete(self) -> None:
        """A request was answered; the next may have begun already."""
        super().on_response_complete()
        if not self._is_answering() and self.conn.trailing_data[0] and self._waiting is None:
            self._wait()

    def pause_writing(self) -> None:
        """The client does not keep up."""
        super().pause_writing()
        if self._held_up is None:
            self._held_up = self.loop.call_later(self.listen_patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._go_on()
        super().resume_writing()

    def _go_on(self) -> None:
        if self._held_up is not None:
            self._held_up.cancel()
            self._held_up = None

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.head_patience_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_answering():
            self.transport.abort()
