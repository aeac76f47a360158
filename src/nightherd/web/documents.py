"""Documents and streams: the envelope that answers share with `--json`, and server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Any

import anyio
import msgspec
from fastapi import Response
from starlette.types import Receive, Scope, Send

from nightherd.views.jobs import timestamp
from nightherd.web.counters import Counters
from nightherd.web.problem import MEDIA_TYPE, PROBLEM_SCHEMA

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


def answers(
    noun: str,
    data: dict[str, Any],
    *problems: int,
    status: int = 200,
    also: tuple[int, ...] = (),
    beside: dict[str, Any] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """What the API description says of a path: its document, and the problems it may answer with."""
    schema = {
        "type": "object",
        "required": ["schema", "as_of", "data", *(beside or {})],
        "properties": {
            "schema": {"const": f"nightherd/v1/{noun}"},
            "as_of": {"type": "string"},
            "data": data,
            **(beside or {}),
        },
    }
    good: dict[int | str, dict[str, Any]] = {
        one: {"description": "The answer", "content": {JSON: {"schema": schema}}}
        for one in (status, *also)
    }
    return {**good, **refusals(*problems)}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a path may answer with, those of every path among them."""
    content = {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}}
    found = sorted({400, 401, 403, 422, 500, 503, 507, *statuses})
    return {status: {"description": "A problem", "content": content} for status in found}


def object_with(*keys: str) -> dict[str, Any]:
    """An object that has at least these keys."""
    return {"type": "object", "required": list(keys), "properties": {key: {} for key in keys}}


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    """A list of such."""
    return {"type": "array", "items": item}


NEXT = {"next_before": {"type": ["integer", "null"]}}
JOB = object_with("id", "agent", "status", "created_at", "usage", "cost_usd", "summary", "error")
SESSION = object_with("id", "agent", "mode", "status", "created_at", "job_count")
ITEM = object_with("id", "kind", "status", "created_at", "title", "hash", "verdicts")
EVENT = object_with("seq", "type", "timestamp")
WORKSPACE = object_with("id", "agent", "mode", "scope", "state", "root", "is_dirty", "size_bytes")
WORKFLOW = object_with("name", "description", "hash", "inputs", "is_enabled", "is_overridden")
WORKFLOW_RUN = object_with("id", "workflow", "status", "started_at", "current_phase", "error")
DIFF = object_with("job_id", "workspace", "before", "after", "files", "left_out")

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
