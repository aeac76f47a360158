"""Message: one thing said in a conversation, put together from its lines.

What was asked, an answer with the calls in it, the result of a call: one message each. Lines without their
end are partial output, which is never history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    MessageEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_message,
)
from nightherd.model.units import format_size

Line = MessageEvent
"""A line of a message."""


class Speaker(StrEnum):
    """Whose message it is."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of one message, first to last; there is at least one."""

    lines: tuple[Line, ...]

    @property
    def last(self) -> Line:
        """The line that ends it."""
        return self.lines[-1]

    @property
    def seq(self) -> int:
        """The number of the event that ends it, in its job's journal."""
        return self.last.seq

    @property
    def speaker(self) -> Speaker:
        """Whose it is; a message has one speaker."""
        match self.lines[0]:
            case SystemEvent():
                return Speaker.USER
            case ToolResultEvent():
                return Speaker.TOOL
            case _:
                return Speaker.ASSISTANT

    @property
    def text(self) -> str:
        """What is said in it: the question, the answer without its calls, the result as text."""
        return "\n\n".join(text for line in self.lines if (text := text_of(line)))

    @property
    def calls(self) -> tuple[ToolUseEvent, ...]:
        """The tools called in it."""
        return tuple(line for line in self.lines if isinstance(line, ToolUseEvent))

    @property
    def results(self) -> tuple[ToolResultEvent, ...]:
        """What tools answered in it."""
        return tuple(line for line in self.lines if isinstance(line, ToolResultEvent))

    @property
    def turn(self) -> int | None:
        """The turn of its job that it belongs to; a question belongs to none."""
        return self.last.turn


def text_of(line: Line) -> str:
    """What one line says, as text; a call says nothing."""
    match line:
        case ToolUseEvent():
            return ""
        case ToolResultEvent():
            return result_text(line)
        case _:
            return line.content or ""


def result_text(line: ToolResultEvent) -> str:
    """A result as text: itself, its text parts, or its JSON; what went wrong comes first."""
    text = plain_result(line.result)
    if line.error and line.error not in text:
        return f"{line.error}\n{text}" if text else line.error
    return text


def whole_messages(events: Iterable[Event]) -> Iterator[Message]:
    """The messages that `events` hold from first line to last, in order."""
    lines: list[Line] = []
    for event in events:
        if isinstance(event, ErrorEvent) or not is_message(event):
            continue
        if lines and _is_another(lines[-1], event):
            lines.clear()
        lines.append(event)
        if event.end:
            yield Message(lines=tuple(lines))
            lines.clear()


def _is_another(before: Line, line: Line) -> bool:
    """Whether a line begins a message again: what stands before it without an end was cut off."""
    return (before.epoch, before.message) != (line.epoch, line.message)


def open_calls(messages: Iterable[Message]) -> dict[str, ToolUseEvent]:
    """The calls that no message answers, by id, in the order in which they were made."""
    found: dict[str, ToolUseEvent] = {}
    for message in messages:
        found |= {call.tool_use_id or "": call for call in message.calls}
        for result in message.results:
            found.pop(result.tool_use_id or "", None)
    return found


def plain_result(result: Any) -> str:
    """The result for people. What is encoded in base64 is named by its kind and size, never printed."""
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and result:
        parts = [_part_text(part) for part in result]
        if all(part is not None for part in parts):
            return "\n".join(part for part in parts if part is not None)
    return msgspec.json.encode(result, enc_hook=str).decode()


def _part_text(part: Any) -> str | None:
    """A block of a result as text; None when it is neither text nor something encoded."""
    match part:
        case {"text": str(text)}:
            return text
        case {"source": {"data": str(data), **source}}:
            return _encoded(source.get("media_type"), part, data)
        case {"data": str(data), "mimeType": str(kind)}:
            return _encoded(kind, part, data)
        case {"resource": {"blob": str(data), **resource}}:
            return _encoded(resource.get("mimeType"), part, data)
        case _:
            return None


def _encoded(kind: Any, part: Mapping[str, Any], data: str) -> str:
    name = kind if isinstance(kind, str) else part.get("type", "data")
    return f"[{name}, {format_size(len(data) * 3 // 4)}]"
