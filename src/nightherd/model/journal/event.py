"""Event: an immutable fact about a job, one journal line each. Five types, a closed union.

`Line` is the envelope every type shares; the journal stamps `v`, `seq`, `epoch`, `timestamp` and
`execution` when it appends. Lines of one model message share `message`, and the last of them says `end`:
a group without its end is partial output, never history. An `error` line belongs to no message, and its
`message` is its text. `extra` holds exactly what the named fields do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from nightherd.decoding import convert
from nightherd.errors import InvalidValueError
from nightherd.model.journal.system import PAYLOADS, TERMINAL_SUBTYPES, Payload, SystemSubtype
from nightherd.model.usage import Usage

VERSION = 1
"""Version of the line format (docs/formats/journal.md)."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The envelope of every event."""

    v: int = 0
    seq: int = 0
    epoch: int = 0
    timestamp: datetime | None = None
    execution: str | None = None
    turn: int | None = None
    uuid: str | None = None
    parent_tool_use_id: str | None = None


class MessageLine(Line, frozen=True, kw_only=True, omit_defaults=True):
    """The envelope of events that can be part of a message of the conversation."""

    message: int | None = None
    index: int | None = None
    end: bool = False


class SystemEvent(MessageLine, frozen=True, kw_only=True, omit_defaults=True, tag="system"):
    """Something about the run itself; `extra` follows the schema of its subtype (model/journal/system.py)."""

    subtype: SystemSubtype
    content: str | None = None
    extra: dict[str, Any] | None = None


class AssistantEvent(MessageLine, frozen=True, kw_only=True, omit_defaults=True, tag="assistant"):
    """What the model said. `partial` marks a streamed piece, which is never history."""

    content: str | None = None
    thinking: str | None = None
    partial: bool | None = None
    usage: Usage | None = None
    extra: dict[str, Any] | None = None


class ToolUseEvent(MessageLine, frozen=True, kw_only=True, omit_defaults=True, tag="tool_use"):
    """The model wants a tool run. Recorded before the tool runs."""

    tool_name: str
    tool_use_id: str | None = None
    input: Any = None
    extra: dict[str, Any] | None = None


class FullOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a tool printed, where its result has only the beginning and the end."""

    sha256: str = ""
    size: int = 0
    """Bytes of the text in UTF-8."""
    left_out: int = 0
    """Bytes beyond the maximum, which were not kept; the text says where."""
    text: str | None = None
    """Only in exports: in a journal the text is a blob."""


class ToolResultEvent(
    MessageLine, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"
):
    """What the tool answered. Once this is recorded the call is never made again."""

    tool_use_id: str | None = None
    result: Any = None
    success: bool | None = None
    error: str | None = None
    full_output: FullOutput | None = None
    extra: dict[str, Any] | None = None


class ErrorEvent(Line, frozen=True, kw_only=True, omit_defaults=True, tag="error"):
    """The run cannot continue."""

    message: str
    code: str | None = None
    stack: str | None = None
    extra: dict[str, Any] | None = None


MessageEvent = SystemEvent | AssistantEvent | ToolUseEvent | ToolResultEvent
"""An event that can be part of a message."""

Event = MessageEvent | ErrorEvent


def describe(
    payload: Payload, content: str | None = None, *, turn: int | None = None
) -> SystemEvent:
    """The system event that carries `payload`."""
    extra = msgspec.to_builtins(payload) or None
    return SystemEvent(subtype=payload.subtype, content=content, turn=turn, extra=extra)


def payload_of(event: SystemEvent) -> Payload:
    """The payload of a system event, or `InvalidValueError` when `extra` does not fit its subtype."""
    try:
        return convert(event.extra or {}, PAYLOADS[event.subtype])
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"system/{event.subtype}: {error}") from error


def is_message(event: Event) -> bool:
    """Whether the event is part of the conversation: what the model is sent again on the next request."""
    match event:
        case SystemEvent(subtype=subtype):
            return subtype is SystemSubtype.USER_INPUT
        case AssistantEvent(partial=partial):
            return not partial
        case ToolUseEvent() | ToolResultEvent():
            return True
        case ErrorEvent():
            return False


def size_of(event: MessageEvent) -> int:
    """How many bytes of the conversation the event is, roughly: what is said in it, not how it is written."""
    match event:
        case ToolUseEvent(tool_name=name, input=given):
            return len(name) + _bytes_of(given)
        case ToolResultEvent(result=result, error=error):
            return _bytes_of(result) + _bytes_of(error)
        case _:
            return _bytes_of(event.content)


def _bytes_of(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="replace"))
    return len(msgspec.json.encode(value))


def by_hand(event: MessageEvent) -> MessageEvent:
    """The event, marked as added outside nightherd: part of the conversation, but not work of the job."""
    extra = {**(event.extra or {}), "by": "hand"}
    marked: MessageEvent = msgspec.structs.replace(event, extra=extra, turn=None)
    return marked


def is_by_hand(event: Event) -> bool:
    """Return whether the event was added outside nightherd."""
    return event.extra is not None and event.extra.get("by") == "hand"


def messages_joined(event: Event) -> Sequence[str]:
    """Return the ids of the chat messages that the agent was told with this event, while it was at work."""
    match event:
        case SystemEvent(subtype=SystemSubtype.USER_INPUT, extra={"messages": [*ids]}):
            return ids
        case _:
            return ()


def mark_appended(event: Event) -> Event:
    """Return the event marked as appended by a program: output of the job, no part of its conversation."""
    extra = {**(event.extra or {}), "by": "program"}
    marked: Event = msgspec.structs.replace(event, extra=extra)
    return marked


def is_appended(event: Event) -> bool:
    """Whether a program appended it while no worker had the job."""
    return event.extra is not None and event.extra.get("by") == "program"


def is_terminal(event: Event) -> bool:
    """Whether the runtime has nothing more to say after this event."""
    match event:
        case ErrorEvent():
            return True
        case SystemEvent(subtype=subtype):
            return subtype in TERMINAL_SUBTYPES
        case _:
            return False
