"""Searching: what is asked, what is found, and which text of an event can be found."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from nightherd.model.index.flat_text import clip, flat_text
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype

EVENT_LIMIT = 16_000
"""Characters of an event that can be found: of a longer one the beginning and the end."""
NAME_LIMIT = 200
PAGE = 20


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for: newest first, those after the hit with the number `before`, at most `limit`."""

    text: str
    """Words and phrases as a person types them (`search_terms.py`)."""
    agent: str | None = None
    since: datetime | None = None
    before: int | None = None
    limit: int = PAGE


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a text, and which characters of it matched, as ranges from the first to behind the last."""

    text: str = ""
    ranges: tuple[tuple[int, int], ...] = ()


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An event, or the name of a session, that matched."""

    kind: str
    """`prompt`, `answer`, `tool_input`, `tool_result`, `error`, `summary` or `session`."""
    at: datetime
    agent: str
    snippet: Snippet
    job_id: str | None = None
    """None for the name of a session."""
    session_id: str | None = None
    seq: int | None = None
    message: int | None = None


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of hits."""

    hits: tuple[Hit, ...] = ()
    next_before: int | None = None
    pending_jobs: int | None = None
    """How many jobs have something that is not indexed yet; None while there is no index, or it has not begun."""


class EventText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of an event that can be found."""

    seq: int
    at: datetime
    kind: str
    body: str
    message: int | None = None


class NamedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session, whose name can be found; one without a name, or that was cleaned up, cannot."""

    id: str
    agent: str = ""
    name: str | None = None
    at: datetime | None = None


def search_text(event: Event) -> EventText | None:
    """The text of the event that can be found; None when it has none."""
    kind, body = _text_of(event)
    if not body or event.timestamp is None:
        return None
    message = None if isinstance(event, ErrorEvent) else event.message
    return EventText(seq=event.seq, at=event.timestamp, kind=kind, body=body, message=message)


def lacks_body(event: Event) -> bool:
    """Whether its text may be kept beside the journal and was not read."""
    match event:
        case SystemEvent(subtype=SystemSubtype.USER_INPUT | SystemSubtype.SUMMARY):
            return event.content is None
        case AssistantEvent(partial=partial):
            return not partial and event.content is None and bool(event.extra)
        case ToolUseEvent():
            return event.input is None
        case ToolResultEvent():
            return event.result is None and event.error is None
        case _:
            return False


def _text_of(event: Event) -> tuple[str, str]:
    match event:
        case ToolUseEvent(tool_name=name, input=given):
            return "tool_input", clip(f"{name}\n{flat_text(given, EVENT_LIMIT)}", EVENT_LIMIT)
        case ToolResultEvent(result=result, error=error):
            shown = flat_text(result, EVENT_LIMIT)
            text = f"{error}\n{shown}" if error is not None and error != shown else shown
            return "tool_result", clip(text, EVENT_LIMIT)
        case AssistantEvent(content=content, partial=partial):
            return "answer", "" if partial else clip(content or "", EVENT_LIMIT)
        case ErrorEvent(message=message):
            return "error", clip(message, EVENT_LIMIT)
        case SystemEvent(subtype=SystemSubtype.USER_INPUT, content=content):
            return "prompt", clip(content or "", EVENT_LIMIT)
        case SystemEvent(subtype=SystemSubtype.SUMMARY, content=content):
            return "summary", clip(content or "", EVENT_LIMIT)
        case SystemEvent(subtype=SystemSubtype.COMPLETE, extra=extra):
            return "summary", flat_text(_summary(extra), EVENT_LIMIT)
        case _:
            return "", ""


def _summary(extra: dict[str, Any] | None) -> object:
    return (extra or {}).get("summary")
