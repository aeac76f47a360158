"""herdctl's job output as events of ours, line by line.

What a line says is kept as it is said, also where it is known to be wrong (a failed tool's `success`). Lines
we have no word for become warnings with their text. Two things are put right, because here they would
mean something else: the calls after an answer belong to its message, and the copy of the last answer that
herdctl writes as a tool's result is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from nightherd.engine.imports.context import Unreadable
from nightherd.imports.lines import (
    Fields,
    Line,
    instant,
    is_count,
    read_lines,
    read_object,
    reason_of,
    shown,
    too_long,
)
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import (
    AuthStatus,
    CompactBoundary,
    Complete,
    Init,
    Payload,
    SessionEnd,
    ToolProgress,
    UserInput,
    Warned,
)
from nightherd.model.usage import Usage

PAYLOADS: dict[str, Payload] = {
    "init": Init(runtime="sdk"),
    "user_input": UserInput(),
    "tool_progress": ToolProgress(),
    "auth_status": AuthStatus(),
    "compact_boundary": CompactBoundary(),
    "complete": Complete(),
    "session_end": SessionEnd(),
    "end": SessionEnd(),
}
"""What each of its system subtypes is here. Its `end` closes the runtime's session; ours ends the job."""

LISTED = 20
"""Bad lines of one file that are listed; all of them are kept as warnings."""

OnUnreadable = Callable[[Unreadable], None]


def read_events(path: Path, on_unreadable: OnUnreadable) -> Iterator[Event]:
    """The events of a job's output; what cannot be read is reported, and its text is kept as a warning."""
    translator = Translator(path, on_unreadable)
    try:
        for line in read_lines(path):
            yield from translator.add(line)
    except OSError as error:
        on_unreadable(Unreadable(file=shown(path), reason=reason_of(error)))
    yield from translator.end()


class Translator:
    """Translates the lines of one file. Holds back one event, whose message the next may continue."""

    def __init__(self, path: Path, on_unreadable: OnUnreadable) -> None:
        self._path = path
        self._on_unreadable = on_unreadable
        self._bad = 0
        self._turn = 0
        self._answer: str | None = None
        self._held: AssistantEvent | ToolUseEvent | None = None

    def add(self, line: Line) -> Iterator[Event]:
        """The events that are certain after one more line."""
        if line.text is not None and not line.text.strip():
            return
        event = self._translate(line)
        if event is None:
            return
        held = self._held
        goes_on = isinstance(event, ToolUseEvent) and held is not None
        if held is not None:
            self._held = None
            yield held if goes_on else msgspec.structs.replace(held, end=True)
        if isinstance(event, ToolUseEvent) or (
            isinstance(event, AssistantEvent) and not event.partial
        ):
            self._turn += 0 if goes_on else 1
            self._held = msgspec.structs.replace(event, turn=self._turn)
        else:
            yield event

    def end(self) -> Iterator[Event]:
        """The event that was held back."""
        if self._held is not None:
            yield msgspec.structs.replace(self._held, end=True)
            self._held = None

    def _translate(self, line: Line) -> Event | None:
        if line.text is None:
            return self._warn(line, "malformed", too_long(), "")
        text = line.text.decode("utf-8", "replace")
        try:
            fields = Fields(read_object(line.text))
        except ValueError as error:
            return self._warn(line, "malformed", reason_of(error), text)
        if self._is_copy_of_answer(fields):
            return None
        event = self._event(fields) or describe(Warned(code="unknown_line"), text)
        return msgspec.structs.replace(event, timestamp=instant(fields.find_text("timestamp")))

    def _warn(self, line: Line, code: str, reason: str, text: str) -> Event:
        """A line that cannot be read: kept, and listed unless it is the torn end of the file."""
        self._bad += line.is_ended
        if line.is_ended and self._bad <= LISTED:
            found = Unreadable(file=shown(self._path), line=line.number, reason=reason)
            self._on_unreadable(found)
        return describe(Warned(code=code, raw=reason), text)

    def _event(self, fields: Fields) -> Event | None:
        match fields.find_text("type"):
            case "system":
                return self._system(fields)
            case "assistant":
                return self._assistant(fields)
            case "tool_use":
                return _tool_use(fields)
            case "tool_result":
                return self._tool_result(fields)
            case "error":
                return _error(fields)
            case _:
                return None

    def _system(self, fields: Fields) -> Event | None:
        payload = PAYLOADS.get(fields.find_text("subtype") or "")
        if payload is None:
            return None
        event = describe(payload, fields.find_text("content"))
        if isinstance(payload, UserInput):
            return msgspec.structs.replace(event, end=True)
        return event

    def _assistant(self, fields: Fields) -> AssistantEvent | None:
        content = fields.raw("content")
        if content is not None and not isinstance(content, str):
            return None
        if fields.is_set("partial"):
            return AssistantEvent(content=content, partial=True)
        self._answer = content or self._answer
        return AssistantEvent(content=content, usage=usage_of(fields.part("usage")))

    def _is_copy_of_answer(self, fields: Fields) -> bool:
        result, is_named = fields.raw("result"), fields.raw("tool_use_id") is not None
        is_result = fields.find_text("type") == "tool_result" and not is_named
        return is_result and isinstance(result, str) and result != "" and result == self._answer

    def _tool_result(self, fields: Fields) -> Event:
        success = fields.raw("success")
        return ToolResultEvent(
            tool_use_id=fields.find_text("tool_use_id"),
            result=fields.raw("result"),
            success=success if isinstance(success, bool) else None,
            error=fields.find_text("error"),
            turn=self._turn or None,
            end=True,
        )


def _tool_use(fields: Fields) -> ToolUseEvent | None:
    name = fields.find_text("tool_name")
    if name is None:
        return None
    call = fields.find_text("tool_use_id")
    return ToolUseEvent(tool_name=name, tool_use_id=call, input=fields.raw("input"))


def _error(fields: Fields) -> ErrorEvent | None:
    message = fields.find_text("message")
    if message is None:
        return None
    return ErrorEvent(
        message=message, code=fields.find_text("code"), stack=fields.find_text("stack")
    )


def usage_of(part: Any) -> Usage | None:
    """The tokens of a mapping that has any."""
    names = (
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    )
    found = {name: part[name] for name in names if is_count(part.get(name))}
    return Usage(**found) if found else None
