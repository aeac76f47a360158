"""The protocol of connections: uvicorn's, with an end to those who take for ever to ask.

A client that opens a connection and says nothing, or sends its headers a byte at a time, is let go. What
it does within a request is limited elsewhere: bodies by the guard, streams by their own patience.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_PATIENCE_S = 10.0


class PatientProtocol(H11Protocol):
    """Waits only so long for the head of a request."""

    head_patience_s = HEAD_PATIENCE_S
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More of a request."""
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
