"""An event stream as an answer: server-sent events to one client, who may be slow, or gone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nightherd.web.tails import Counters

RETRY_MS = 1_000
"""After how long a client that lost the stream comes back."""


class EventStream(Response):
    """Sends what `chunks` gives until it ends or the client leaves. A slow client is sent no more than it takes."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None], counters: Counters) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(None, 200, headers=headers)
        del self.headers["content-length"]
        self._chunks = chunks
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._counters.followers += 1
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._send_all(send)
                tasks.cancel_scope.cancel()
        finally:
            self._counters.followers -= 1

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            await _send(send, b"retry: %d\n\n" % RETRY_MS)
            async for chunk in chunks:
                await _send(send, chunk)
                self._counters.events_sent += chunk.count(b"\nevent: ")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
