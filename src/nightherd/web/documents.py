"""Documents and streams: the envelope that answers share with `--json`, and server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any

import anyio
import msgspec
from fastapi import Response
from starlette.types import Receive, Scope, Send

from nightherd.views.jobs.jobs import timestamp
from nightherd.web.counters import Counters
from nightherd.web.problem import MEDIA_TYPE, ProblemDocument

JSON = "application/json"


def document(
    noun: str, data: Any, as_of: datetime, *, status: int = 200, **beside: Any
) -> Response:
    """`data` in its envelope."""
    envelope = {
        "schema": f"nightherd/v1/{noun}",
        "as_of": timestamp(as_of),
        "data": data,
        **beside,
    }
    return Response(msgspec.json.encode(envelope), status, media_type=JSON)


class TypedSchema(dict[str, Any]):
    """A schema whose parts are types; the API's description has them as components (`openapi.py`)."""

    def __init__(
        self, schema: Mapping[str, Any], types: Mapping[str, Any], *, is_whole: bool
    ) -> None:
        super().__init__(schema)
        self.types = types
        """By property of the schema."""
        self.is_whole = is_whole
        """Whether the type `data` is the whole schema, not one of its properties."""


def envelope(noun: str, data: Any, beside: Mapping[str, Any] | None = None) -> TypedSchema:
    """The schema of a document in its envelope; `data` and what stands `beside` it are types."""
    types = {"data": data, **(beside or {})}
    schema = {
        "type": "object",
        "required": ["schema", "as_of", *types],
        "properties": {
            "schema": {"type": "string", "const": f"nightherd/v1/{noun}"},
            "as_of": {"type": "string"},
        },
    }
    return TypedSchema(schema, types, is_whole=False)


def bare(kind: Any) -> TypedSchema:
    """The schema of a document without an envelope."""
    return TypedSchema({"type": "object"}, {"data": kind}, is_whole=True)


def answers(
    noun: str,
    data: Any,
    *problems: int,
    status: int = 200,
    also: tuple[int, ...] = (),
    beside: Mapping[str, Any] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """What the API description says of a path: its document, and the problems it may answer with.

    `data` is the type of the document, such as `list[JobRow]`; `beside` has the types of the keys next to it.
    """
    content = {JSON: {"schema": envelope(noun, data, beside)}}
    good: dict[int | str, dict[str, Any]] = {
        one: {"description": "The answer", "content": content} for one in (status, *also)
    }
    return {**good, **refusals(*problems)}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a path may answer with, those of every path among them."""
    content = {MEDIA_TYPE: {"schema": bare(ProblemDocument)}}
    found = sorted({400, 401, 403, 422, 500, 503, 507, *statuses})
    return {status: {"description": "A problem", "content": content} for status in found}


NEXT: Mapping[str, Any] = {"next_before": int | None}
"""What stands beside the rows of a list that has pages."""

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
