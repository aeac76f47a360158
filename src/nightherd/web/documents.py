"""Documents: the envelope that every answer shares with the command line's `--json`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from fastapi import Response

from nightherd.views.jobs import timestamp
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
EVENT = object_with("seq", "type", "timestamp")
