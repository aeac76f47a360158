"""Events with short bodies: a long text is cut to its beginning, and a reference says where the whole one is.

A field inside a body is named by a path of keys and positions, such as `input/content` or `result/0/text`
(a JSON pointer, RFC 6901, without its first slash).
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, cast
from urllib.parse import quote

import msgspec

from nightherd.errors import NotFoundError
from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.ports import Journals
from nightherd.views.jobs.events import event_document

TEXT_LIMIT = 8 * 1024
"""A text of more bytes than this is cut."""
KEPT = 2 * 1024
"""Bytes of its beginning that stay."""
VALUE_LIMIT = 32 * 1024
"""A body that is larger than this after its texts were cut, as JSON, is left out as a whole."""
DEEPEST = 32
"""Values below this depth are kept or left out as a whole."""
FULL_OUTPUT = "full_output"
NOT_CUT = frozenset({FULL_OUTPUT, "settings"})
"""What an event names by itself, with its hash: the output of a tool, and the settings of an execution."""


class Cut(TypedDict):
    """A text that is not whole in an event: its field, its bytes, and the path that has all of it."""

    field: str
    size: int
    url: str


class EventRow(TypedDict):
    """An event as its journal line says it. Which fields there are depends on its type."""

    type: Literal["system", "assistant", "tool_use", "tool_result", "error"]
    v: int
    seq: int
    epoch: NotRequired[int]
    timestamp: NotRequired[str]
    execution: NotRequired[str]
    turn: NotRequired[int]
    uuid: NotRequired[str]
    parent_tool_use_id: NotRequired[str]
    message: NotRequired[int | str]
    """The number of its message; the text of an error."""
    index: NotRequired[int]
    end: NotRequired[bool]
    subtype: NotRequired[str]
    content: NotRequired[str]
    thinking: NotRequired[str]
    partial: NotRequired[bool]
    usage: NotRequired[dict[str, Any]]
    tool_name: NotRequired[str]
    tool_use_id: NotRequired[str]
    input: NotRequired[Any]
    result: NotRequired[Any]
    success: NotRequired[bool]
    error: NotRequired[str]
    full_output: NotRequired[dict[str, Any]]
    code: NotRequired[str]
    stack: NotRequired[str]
    extra: NotRequired[dict[str, Any]]
    cut: NotRequired[list[Cut]]
    """With `bodies=short`: what is not whole."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A whole body: a text, a JSON value, or bytes."""

    kind: Literal["text", "json", "bytes"]
    data: bytes


def event_row(event: Event) -> EventRow:
    """Return an event exactly as its journal line says it."""
    return cast("EventRow", event_document(event))


def short_event(journals: Journals, job_id: JobId, event: Event) -> EventRow:
    """Return an event with every long text cut, and with references to what is cut or stored beside the journal."""
    document = event_document(event)
    cuts: list[Cut] = []
    for field, stored in journals.stored_bodies(event).items():
        if field not in NOT_CUT:
            cuts.append(_cut(job_id, event, field, stored.size))
    for field, value in document.items():
        document[field], found = cut_long_texts(value, field)
        cuts += [_cut(job_id, event, path, size) for path, size in found]
    if cuts:
        document["cut"] = cuts
    return cast("EventRow", document)


def cut_long_texts(value: Any, field: str) -> tuple[Any, list[tuple[str, int]]]:
    """Return a body with its long texts cut, and the path and size of each; None for one that stays too large."""
    found: list[tuple[str, int]] = []
    shortened = _shorten(value, field, 0, found)
    if isinstance(shortened, dict | list) and _size(shortened) > VALUE_LIMIT:
        return None, [(field, _size(value))]
    return shortened, found


def read_body(journals: Journals, job_id: JobId, seq: int, field: str | None) -> Body:
    """Return a whole field of an event; the whole event without `field`. `NotFoundError` when it has no such field."""
    event = next(iter(journals.read(job_id, after=seq - 1)), None)
    if event is None or event.seq != seq:
        raise NotFoundError(f"{job_id} has no event {seq}")
    if field is None:
        return Body(kind="json", data=msgspec.json.encode(event))
    if field == FULL_OUTPUT and isinstance(event, ToolResultEvent) and event.full_output:
        text = journals.read_output(event.full_output)
        return Body(kind="text", data=text.encode(errors="replace"))
    top = getattr(event, field, None) if "/" not in field else None
    if isinstance(top, bytes):
        return Body(kind="bytes", data=top)
    value = _value_at(event_document(event), field)
    if value is None:
        raise NotFoundError(f"event {seq} of {job_id} has no field {field[:200]!r}")
    if isinstance(value, str):
        return Body(kind="text", data=value.encode(errors="replace"))
    return Body(kind="json", data=msgspec.json.encode(value))


def _cut(job_id: JobId, event: Event, field: str, size: int) -> Cut:
    url = f"/v1/jobs/{job_id}/events/{event.seq}/body?field={quote(field, safe='/')}"
    return {"field": field, "size": size, "url": url}


def _shorten(value: Any, path: str, depth: int, cuts: list[tuple[str, int]]) -> Any:
    """Return the value with its long texts cut; each one's path and size go to `cuts`."""
    if isinstance(value, str):
        size = len(value) if value.isascii() else len(value.encode(errors="replace"))
        if size <= TEXT_LIMIT:
            return value
        cuts.append((path, size))
        return value[:KEPT].encode(errors="replace")[:KEPT].decode(errors="ignore")
    if not isinstance(value, dict | list):
        return value
    if depth == DEEPEST:
        size = _size(value)
        if size <= TEXT_LIMIT:
            return value
        cuts.append((path, size))
        return None
    if isinstance(value, list):
        return [
            _shorten(item, f"{path}/{place}", depth + 1, cuts) for place, item in enumerate(value)
        ]
    return {
        key: _shorten(item, f"{path}/{_escaped(key)}", depth + 1, cuts)
        for key, item in value.items()
    }


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _value_at(document: Any, path: str) -> Any:
    """Return what is at the path; None when there is nothing."""
    value = document
    for part in path.split("/"):
        if isinstance(value, dict):
            value = value.get(part.replace("~1", "/").replace("~0", "~"))
        elif isinstance(value, list) and part.isascii() and part.isdecimal():
            place = int(part) if len(part) < 12 else len(value)
            value = value[place] if place < len(value) else None
        else:
            return None
    return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
