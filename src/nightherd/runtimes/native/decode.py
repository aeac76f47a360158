"""Decode: lines of the journal as messages of pydantic-ai. `dump.py` says what stands where.

`decode` of what `encode` made dumps to the same bytes as the message that was encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from nightherd.errors import InvalidValueError
from nightherd.model.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.system import SystemSubtype
from nightherd.runtimes.native.build import build
from nightherd.runtimes.native.constants import INSTRUCTIONS
from nightherd.runtimes.native.dump import Dump, spell_arguments, unpack

TOLD_CUT_OFF = "partial_cognition"
"""In `extra` of a prompt that tells the model what had arrived of an answer that never ended."""

_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def decode(
    events: Iterable[Event], constants: Mapping[str, Any] | None = None
) -> list[ModelMessage]:
    """The messages that the events come to; `constants` are those written before, body by hash.

    Lines that another runtime or the engine wrote are understood as far as their named fields go. An answer
    without its end is left out, and what was streamed is never history.
    """
    reader = Reader(constants)
    for event in events:
        reader.add(event)
    return load(reader.dumps)


def read_back(lines: Iterable[Event]) -> list[ModelMessage]:
    """The messages that readers of a journal will find in these lines; an error when they will find none."""
    return decode([_events.decode(msgspec.json.encode(line)) for line in lines])


def load(dumps: Iterable[Dump]) -> list[ModelMessage]:
    """The messages of these dumps: plain ones made directly, all others checked at once."""
    given = list(dumps)
    made = [build(dump) for dump in given]
    others = [dump for dump, message in zip(given, made, strict=True) if message is None]
    checked = iter(_checked(others) if others else ())
    return [message if message is not None else next(checked) for message in made]


def _checked(dumps: list[Dump]) -> list[ModelMessage]:
    try:
        return ModelMessagesTypeAdapter.validate_json(_json(dumps))
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(
            f"the record holds a message that cannot be read: {error}"
        ) from error


def _json(dumps: list[Dump]) -> str | bytes:
    try:
        return msgspec.json.encode(dumps)
    except OverflowError:  # a number that a line cannot hold; much slower, and hardly ever
        return json.dumps(dumps)


class Reader:
    """Takes the events of a session in order; `dumps` are the messages they come to so far."""

    def __init__(self, constants: Mapping[str, Any] | None = None) -> None:
        self.dumps: list[Dump] = []
        self.constants = dict(constants or {})
        self._names: dict[str, str] = {}
        self._unended: list[AssistantEvent | ToolUseEvent] = []
        self._streamed: list[str] = []

    @property
    def cut_off(self) -> str | None:
        """What had arrived of an answer that never ended, and has not been told to the model since."""
        whole = [line.content for line in self._unended if isinstance(line, AssistantEvent)]
        return "".join(filter(None, whole)) or "".join(self._streamed) or None

    def add(self, event: Event) -> None:
        """Take the next event."""
        # A long record is nearly all answers and results: asked for first, and by no more than their kind.
        if isinstance(event, AssistantEvent):
            if not event.partial:
                self._add_answer_line(event)
            elif event.content:
                self._streamed.append(event.content)
            return
        if isinstance(event, ToolUseEvent):
            self._add_answer_line(event)
            return
        if isinstance(event, ToolResultEvent):
            if event.end:
                self._add_request_line(event)
            return
        match event:
            case SystemEvent(subtype=SystemSubtype.USER_INPUT, end=True):
                self._add_request_line(event)
            case SystemEvent(subtype=SystemSubtype.CONTEXT, extra={"hash": str(name), **rest}):
                self.constants[name] = rest.get("body")
            case _:
                pass

    def _add_answer_line(self, event: AssistantEvent | ToolUseEvent) -> None:
        if not event.index:
            self._unended.clear()
        self._unended.append(event)
        if event.end:
            self._end_answer()
            self._forget_cut_off()

    def _forget_cut_off(self) -> None:
        self._unended.clear()
        self._streamed.clear()

    def _end_answer(self) -> None:
        lines = self._unended
        dump = {**unpack((lines[0].extra or {}).get("response", {}))}
        if "timestamp" not in dump:
            dump["timestamp"] = _stamp(lines[0])
        parts = [part for line in lines for part in _answer_parts(line)]
        for part in parts:
            if part["part_kind"] == "tool-call":
                self._names[part["tool_call_id"]] = part["tool_name"]
        dump["parts"], dump["kind"] = parts, "response"
        self.dumps.append(dump)

    def _add_request_line(self, event: SystemEvent | ToolResultEvent) -> None:
        extra = event.extra or {}
        if TOLD_CUT_OFF in extra:
            self._forget_cut_off()
        if "request" in extra or not self.dumps or self.dumps[-1]["kind"] != "request":
            head = self._head(unpack(extra.get("request", {})))
            self.dumps.append({**head, "parts": [], "kind": "request"})
        own = [] if "before" in extra and "part" not in extra else [self._part_of(event)]
        before, after = unpack(extra.get("before", [])), unpack(extra.get("after", []))
        self.dumps[-1]["parts"] += [*before, *own, *after]

    def _head(self, given: Dump) -> Dump:
        if not isinstance(given.get(INSTRUCTIONS), dict):
            return given
        name = given[INSTRUCTIONS]["context"]
        if name not in self.constants:
            raise InvalidValueError(f"the record does not hold the instructions {name}")
        return {**given, INSTRUCTIONS: self.constants[name]}

    def _part_of(self, event: SystemEvent | ToolResultEvent) -> Dump:
        rest = unpack((event.extra or {}).get("part"))
        timestamp = {"timestamp": _stamp(event)} if rest is None else {}
        if isinstance(event, SystemEvent):
            return {
                "content": event.content or "",
                **timestamp,
                **(rest or {}),
                "part_kind": "user-prompt",
            }
        call = event.tool_use_id or ""
        return {
            "tool_name": self._names.get(call, "unknown"),
            "outcome": "success" if event.success is not False else "failed",
            "content": _content_of(event),
            **timestamp,
            **(rest or {}),
            "tool_call_id": call,
            "part_kind": "tool-return",
        }


def _content_of(event: ToolResultEvent) -> Any:
    """What the model is told: the result, the error, or the one above the other."""
    if event.error is None:
        return event.result
    return event.error if event.result is None else f"{event.result}\n{event.error}"


def _answer_parts(line: AssistantEvent | ToolUseEvent) -> Sequence[Dump]:
    extra = line.extra or {}
    rest = unpack(extra["part"]) if "part" in extra else {}
    if isinstance(line, ToolUseEvent):
        call = {
            "tool_name": line.tool_name,
            "args": spell_arguments(line.input, extra.get("args")),
            "tool_call_id": line.tool_use_id or "",
            **rest,
            "part_kind": "tool-call",
        }
        return (call,)
    parts = [unpack(extra["whole"])] if "whole" in extra else []
    if line.thinking is not None:
        parts.append({"content": line.thinking, **rest, "part_kind": "thinking"})
    if line.content is not None:
        parts.append({"content": line.content, **rest, "part_kind": "text"})
    return parts


def _stamp(event: Event) -> Any:
    """When it was recorded; nothing was, in the case of an event that never went through a journal."""
    return event.timestamp.isoformat() if event.timestamp is not None else "1970-01-01T00:00:00Z"
