"""Bodies of requests: limited in size and in the time they may take."""

from __future__ import annotations

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive

from nightherd.web.problem import problem

CLOSE = {"connection": "close"}
TOO_LARGE = "a body may have at most {} bytes"
DISCARDED = 8 * 1024 * 1024
"""Bytes that are read of a body that is not taken, before its sender is hung up on."""


def closing(answer: Response) -> Response:
    """`answer`, after which the connection is closed: whatever else was sent is not read."""
    answer.headers.update(CLOSE)
    return answer


def too_large(limit: int) -> Response:
    """The answer to a body that is too large."""
    return closing(problem(413, "too_large", TOO_LARGE.format(limit)))


async def discard(receive: Receive, patience_s: float) -> None:
    """Let a sender finish that is not far from it: many hear an answer only when they have said all."""
    size = 0
    with anyio.move_on_after(patience_s):
        while size < DISCARDED:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


class LimitedBody:
    """Receives a body of limited size, in limited time."""

    def __init__(
        self, receive: Receive, limit: int, chunk_patience_s: float, body_patience_s: float
    ) -> None:
        self._receive = receive
        self._limit = limit
        self._chunk_patience_s = chunk_patience_s
        self._size = 0
        self._is_whole = False
        self._deadline = anyio.current_time() + body_patience_s

    async def __call__(self) -> Message:
        """The next part."""
        if self._is_whole:
            return await self._receive()
        left = self._deadline - anyio.current_time()
        with anyio.move_on_after(min(self._chunk_patience_s, max(left, 0))) as waiting:
            message = await self._receive()
        if waiting.cancelled_caught:
            raise HTTPException(408, "the body did not come in time", CLOSE)
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        else:
            self._is_whole = True
        if self._size > self._limit:
            raise HTTPException(413, TOO_LARGE.format(self._limit), CLOSE)
        return message
