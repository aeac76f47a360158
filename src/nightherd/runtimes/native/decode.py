"""Decode: lines of the journal as messages of pydantic-ai. `encode.py` says what stands where.

`decode` of what `encode` made dumps to the same bytes as the message that was encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from nightherd.decoding import json_decoder
from nightherd.errors import InvalidValueError
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.sessions.context_window import COVERED_CALLS
from nightherd.runtimes.native.build import (
    NEVER,
    AnswerLine,
    RequestLine,
    build_answer,
    build_request,
    content_of,
)
from nightherd.runtimes.native.encode import Dump, spell_arguments, unpack
from nightherd.runtimes.native.setup import INSTRUCTIONS

TOLD_CUT_OFF = "partial_cognition"
"""In `extra` of a prompt that gives the model what had arrived of an answer that never ended."""

_events: msgspec.json.Decoder[Event] = json_decoder(Event)


def decode(
    events: Iterable[Event], constants: Mapping[str, Any] | None = None
) -> list[ModelMessage]:
    """The messages of the events; `constants` are those written before, body by hash.

    Lines that another runtime or the engine wrote are understood as far as their named fields go. An answer
    without its end is left out, and what was streamed is never history.
    """
    reader = Reader(constants)
    reader.take(events)
    return load(reader.made())


def read_back(lines: Iterable[Event]) -> list[ModelMessage]:
    """The messages that readers of a journal will find in these lines; an error when they will find none."""
    return decode([_events.decode(msgspec.json.encode(line)) for line in lines])


def load(made: Iterable[ModelMessage | Dump]) -> list[ModelMessage]:
    """The messages, those that are still dumps checked at once."""
    given = list(made)
    dumps = [one for one in given if isinstance(one, dict)]
    checked = iter(_checked(dumps) if dumps else ())
    return [next(checked) if isinstance(one, dict) else one for one in given]


def _checked(dumps: list[Dump]) -> list[ModelMessage]:
    try:
        return ModelMessagesTypeAdapter.validate_json(_json(dumps))
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(
            f"the journal has a message that cannot be read: {error}"
        ) from error


def _json(dumps: list[Dump]) -> str | bytes:
    try:
        return msgspec.json.encode(dumps)
    except OverflowError:  # a number that a line cannot hold; much slower, and hardly ever
        return json.dumps(dumps)


class Reader:
    """Takes the events of a session in order, and builds messages from their lines."""

    def __init__(self, constants: Mapping[str, Any] | None = None) -> None:
        self.constants = dict(constants or {})
        self.written = set[str]()
        """The constants that the job read last has on record, by hash."""
        self.call_ids = set[str]()
        """The ids of all calls, also of those that a summary stands for."""
        self._made: list[ModelMessage | Dump] = []
        self._names: dict[str, str] = {}
        self._request: list[RequestLine] = []
        """The lines of the last message, if it is a request: results that follow are part of it."""
        self._unended: list[AnswerLine] = []
        self._streamed: list[str] = []

    @property
    def cut_off(self) -> str | None:
        """What had arrived of an answer that never ended, and has not been sent to the model since."""
        whole = [line.content for line in self._unended if isinstance(line, AssistantEvent)]
        return "".join(filter(None, whole)) or "".join(self._streamed) or None

    def take(self, events: Iterable[Event]) -> None:
        """Take the next events."""
        # A long record is nearly all answers and checkpoints: asked for first, and by no more than their kind.
        checkpoint = SystemSubtype.CHECKPOINT
        for event in events:
            if isinstance(event, AssistantEvent):
                if not event.partial:
                    self._take_answer_line(event)
                elif event.content:
                    self._streamed.append(event.content)
            elif isinstance(event, SystemEvent):
                if event.subtype is not checkpoint:
                    self._take_system(event)
            elif isinstance(event, ToolUseEvent):
                self.call_ids.add(event.tool_use_id or "")
                self._take_answer_line(event)
            elif isinstance(event, ToolResultEvent) and event.end:
                self._take_request_line(event)

    def made(self) -> list[ModelMessage | Dump]:
        """The messages of all that was taken: plain ones as they are, others as dumps that are to be checked."""
        if self._request:
            self._end_request()
        return self._made

    def _take_system(self, event: SystemEvent) -> None:
        match event:
            case SystemEvent(subtype=SystemSubtype.USER_INPUT, end=True):
                self._take_request_line(event)
            case SystemEvent(subtype=SystemSubtype.CONTEXT, extra={"hash": str(name), **rest}):
                self.constants[name] = rest.get("body")
                self.written.add(name)
            case SystemEvent(subtype=SystemSubtype.HEADER):
                self.written.clear()
            case _:
                pass

    def _take_answer_line(self, event: AnswerLine) -> None:
        if not event.index:
            self._unended = []
        self._unended.append(event)
        if not event.end:
            return
        lines = self._unended
        self._forget_cut_off()
        if self._request:
            self._end_request()
        for line in lines:
            if isinstance(line, ToolUseEvent):
                self._names[line.tool_use_id or ""] = line.tool_name
        self._made.append(build_answer(lines) or _answer_dump(lines))

    def _take_request_line(self, event: RequestLine) -> None:
        extra = event.extra or {}
        if TOLD_CUT_OFF in extra:
            self._forget_cut_off()
        if "request" in extra and self._request:
            self._end_request()
        self._request.append(event)
        self.call_ids.update(extra.get(COVERED_CALLS, ()))

    def _forget_cut_off(self) -> None:
        self._unended, self._streamed = [], []

    def _end_request(self) -> None:
        lines, self._request = self._request, []
        plain = build_request(lines, self._names, self.constants)
        self._made.append(plain or self._request_dump(lines))

    def _request_dump(self, lines: Sequence[RequestLine]) -> Dump:
        head = self._head(unpack((lines[0].extra or {}).get("request", {})))
        return {
            **head,
            "parts": [part for line in lines for part in self._request_parts(line)],
            "kind": "request",
        }

    def _request_parts(self, line: RequestLine) -> Sequence[Dump]:
        extra = line.extra or {}
        own = [] if "before" in extra and "part" not in extra else [self._part_of(line)]
        return [*unpack(extra.get("before", [])), *own, *unpack(extra.get("after", []))]

    def _head(self, given: Dump) -> Dump:
        if not isinstance(given.get(INSTRUCTIONS), dict):
            return given
        name = given[INSTRUCTIONS]["context"]
        if name not in self.constants:
            raise InvalidValueError(f"the record does not hold the instructions {name}")
        return {**given, INSTRUCTIONS: self.constants[name]}

    def _part_of(self, line: RequestLine) -> Dump:
        rest = unpack((line.extra or {}).get("part"))
        timestamp = {"timestamp": _stamp(line)} if rest is None else {}
        if isinstance(line, SystemEvent):
            return {
                "content": line.content or "",
                **timestamp,
                **(rest or {}),
                "part_kind": "user-prompt",
            }
        call = line.tool_use_id or ""
        return {
            "tool_name": self._names.get(call, "unknown"),
            "outcome": "success" if line.success is not False else "failed",
            "content": content_of(line),
            **timestamp,
            **(rest or {}),
            "tool_call_id": call,
            "part_kind": "tool-return",
        }


def _answer_dump(lines: Sequence[AnswerLine]) -> Dump:
    return {
        "timestamp": _stamp(lines[0]),
        **unpack((lines[0].extra or {}).get("response", {})),
        "parts": [part for line in lines for part in _answer_parts(line)],
        "kind": "response",
    }


def _answer_parts(line: AnswerLine) -> Sequence[Dump]:
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


def _stamp(line: AnswerLine | RequestLine) -> str:
    """When it was recorded."""
    return (line.timestamp or NEVER).isoformat()


UNREADABLE = "(what stood here cannot be read any more)"


def load_or_retell(made: Sequence[ModelMessage | Dump]) -> tuple[list[ModelMessage], int]:
    """The messages that these are or dump, and how many of them had to be retold."""
    try:
        return load(made), 0
    except InvalidValueError:
        pass
    messages, retold = [], 0
    for one in made:
        try:
            messages += load([one])
        except InvalidValueError:
            if not isinstance(one, dict):
                raise
            messages.append(rebuild_message(one))
            retold += 1
    return messages, retold


def rebuild_message(dump: Dump) -> ModelMessage:
    """The message of the dump, made of nothing but texts, calls and results; never without any."""
    at = _instant(dump.get("timestamp"))
    if dump["kind"] == "response":
        said = list(_said(dump["parts"]))
        return ModelResponse(said or [TextPart(UNREADABLE)], timestamp=at)
    asked = list(_asked(dump["parts"]))
    return ModelRequest(asked or [UserPromptPart(UNREADABLE, timestamp=at)])


def _instant(text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return NEVER


def _said(parts: Iterable[Dump]) -> Iterator[ModelResponsePart]:
    for part in parts:
        match part:
            case {"part_kind": "text", "content": str(text)}:
                yield TextPart(text)
            case {"part_kind": "thinking", "content": str(text)}:
                yield ThinkingPart(text)
            case {"part_kind": "tool-call", "tool_name": str(name), "tool_call_id": str(call)}:
                yield ToolCallPart(name, _text(part.get("args")), call)
            case _:
                pass


def _asked(parts: Iterable[Dump]) -> Iterator[ModelRequestPart]:
    for part in parts:
        at = _instant(part.get("timestamp"))
        match part:
            case {"part_kind": "user-prompt", "content": content}:
                yield UserPromptPart(_text(content), timestamp=at)
            case {"part_kind": "tool-return", "tool_name": str(name), "tool_call_id": str(call)}:
                yield ToolReturnPart(name, _text(part.get("content")), call, timestamp=at)
            case _:
                pass


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
