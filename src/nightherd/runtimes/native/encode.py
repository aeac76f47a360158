"""Encode: a message of pydantic-ai as lines of the journal.

How a message becomes lines is said here once, also for `decode.py`. A line says in its named fields
what a reader wants to know: the text, the thoughts, the call, its result. Its `extra` holds the rest, and
nothing twice:

- `response` or `request`: the fields of the message itself, on its first line; `request` also says that a
  new request begins here, since results that follow each other are one request.
- `part`: the fields of the part that the line's own do not say. `args`: how a call's arguments were spelled.
- `whole`: a part that has no line of its own kind, as pydantic-ai dumps it. `before` and `after`: such parts
  of a request, which stand beside the line's own.

Each result and each prompt is a message of the record; an answer is one, and the last of its lines ends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, cast

import msgspec
from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.usage import RequestUsage
from pydantic_core import from_json

from nightherd.model.journal.event import (
    AssistantEvent,
    MessageEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import Context, SystemSubtype
from nightherd.model.text import whole_text
from nightherd.model.usage import Usage
from nightherd.runtimes.native.setup import INSTRUCTIONS, constant
from nightherd.runtimes.native.toolset import Answered

Dump = dict[str, Any]
"""A message or part as pydantic-ai dumps it."""

BIGGEST = 2**64 - 1
SMALLEST = -(2**63)
"""Whole numbers beyond these are more than a line can hold."""

DEEPEST = 100
"""Levels of a text of arguments that is kept as a value."""

PACKED = "json"

SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "compact": lambda value: msgspec.json.encode(value).decode(),
    "spaced": json.dumps,
    "unicode": lambda value: json.dumps(value, ensure_ascii=False),
}
"""How models write the arguments of calls; a text that is none of these is kept as it came."""
AS_IT_CAME = "raw"
AS_VALUE = "value"
"""The arguments came as a value that only a text can hold."""


def read_arguments(args: Any) -> tuple[Any, str | None]:
    """A call's arguments as a value, and how they were spelled if they came as a text."""
    if not isinstance(args, str):
        return (json.dumps(args), AS_VALUE) if has_big_numbers(args) else (args, None)
    try:
        value = json.loads(args, parse_constant=_refuse)
        if _is_deep(args, value):
            return args, AS_IT_CAME
        for name, spell in SPELLINGS.items():
            if spell(value) == args:
                return value, name
    except (ValueError, OverflowError, RecursionError):
        pass
    return args, AS_IT_CAME


def _is_deep(text: str, value: Any) -> bool:
    """Whether it is nested deeper than everybody who reads a line goes; most texts have too few brackets for it."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _refuse(constant: str) -> None:
    """`Infinity` and `NaN` are numbers to Python, and nothing that a line can hold."""
    raise ValueError(constant)


def spell_arguments(value: Any, spelling: str | None) -> Any:
    """The arguments as they came."""
    if spelling is None or spelling == AS_IT_CAME:
        return value
    return json.loads(value) if spelling == AS_VALUE else SPELLINGS[spelling](value)


def has_big_numbers(value: Any) -> bool:
    """Whether a number in `value` is more than a line can hold."""
    match value:
        case dict():
            return any(map(has_big_numbers, value.values()))
        case list():
            return any(map(has_big_numbers, value))
        case int():
            return not SMALLEST <= value <= BIGGEST
        case _:
            return False


def pack(value: Any) -> Any:
    """`value`, or its JSON as a text when it holds a number that a line cannot."""
    return {PACKED: json.dumps(value)} if has_big_numbers(value) else value


def unpack(value: Any) -> Any:
    """What was packed."""
    if type(value) is dict and len(value) == 1 and type(value.get(PACKED)) is str:
        return json.loads(value[PACKED])
    return value


_USAGE_DEFAULTS: Dump = {
    field.name: field.default for field in fields(RequestUsage) if field.default is not MISSING
} | {"details": {}}

_CONFIG = ConfigDict(defer_build=True, ser_json_bytes="base64", val_json_bytes="base64")
_REQUESTS = TypeAdapter(list[ModelRequest], config=_CONFIG)
_ANSWERS = TypeAdapter(list[ModelResponse], config=_CONFIG)
"""As `ModelMessagesTypeAdapter`, which takes twice as long: it tries which of the two a message is."""


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """A message as lines, and the constants that the lines refer to."""

    constants: tuple[Context, ...]
    lines: tuple[MessageEvent, ...]


def encode(
    message: ModelMessage, *, turn: int | None = None, usage: Usage | None = None
) -> Encoded:
    """The message as lines of turn `turn`. `ValueError` when pydantic-ai itself cannot dump it.

    `usage` goes to the first line of an answer: it counts even when the rest of the answer is never written.
    """
    dump = dumped(message)
    if dump["kind"] == "response":
        return Encoded(constants=(), lines=tuple(_numbered(_answer_lines(dump, usage), turn)))
    constants: list[Context] = []
    lines = tuple(_request_lines(dump, constants, turn))
    return Encoded(constants=tuple(constants), lines=lines)


def dumped(message: ModelMessage) -> Dump:
    """The message as pydantic-ai dumps it among others."""
    # No warnings: a value of the wrong type is found when the message is read, and said there.
    if isinstance(message, ModelResponse):
        data = _ANSWERS.dump_json([message], warnings=False)
    else:
        data = _REQUESTS.dump_json([message], warnings=False)
    try:
        (dump,) = from_json(data)
    except ValueError:  # nested more deeply than the quick reader goes
        (dump,) = json.loads(data)
    return cast("Dump", dump)


def _answer_lines(dump: Dump, usage: Usage | None) -> Iterator[AssistantEvent | ToolUseEvent]:
    head = _slim(dump, "parts", "kind")
    head["usage"] = _without_defaults(dump["usage"], _USAGE_DEFAULTS)
    head = _without_defaults(head, {"state": "complete"})
    first: Dump = {"response": pack(head)}
    parts = dump["parts"]
    if not parts or parts[0]["part_kind"] == "tool-call":
        yield AssistantEvent(extra=first, usage=usage)
        first, usage = {}, None
    for part in parts:
        yield _answer_line(part, first, usage)
        first, usage = {}, None


def _answer_line(part: Dump, first: Dump, usage: Usage | None) -> AssistantEvent | ToolUseEvent:
    match part["part_kind"]:
        case "text":
            extra = first | _rest(part, "content", "part_kind")
            return AssistantEvent(content=part["content"], usage=usage, extra=extra or None)
        case "thinking":
            extra = first | _rest(part, "content", "part_kind")
            return AssistantEvent(thinking=part["content"], usage=usage, extra=extra or None)
        case "tool-call":
            value, spelling = read_arguments(part["args"])
            extra = _rest(part, "tool_name", "tool_call_id", "args", "part_kind")
            extra |= {"args": spelling} if spelling is not None else {}
            return ToolUseEvent(
                tool_name=part["tool_name"],
                tool_use_id=part["tool_call_id"],
                input=value,
                extra=extra or None,
            )
        case _:
            return AssistantEvent(usage=usage, extra=first | {"whole": pack(part)})


def _request_lines(
    dump: Dump, constants: list[Context], turn: int | None
) -> Iterator[MessageEvent]:
    head = _without_defaults(_slim(dump, "parts", "kind"), {"state": "complete"})
    if dump[INSTRUCTIONS] is not None:
        text = constant(INSTRUCTIONS, dump[INSTRUCTIONS])
        constants.append(text)
        head[INSTRUCTIONS] = {"context": text.hash}
    extra: Dump = {"request": pack(head)}
    before: list[Dump] = []
    line: MessageEvent | None = None
    for part in dump["parts"]:
        if part["part_kind"] not in ("user-prompt", "tool-return"):
            before.append(part)
            continue
        if line is not None:
            yield line
        line = _request_line(part, extra | ({"before": pack(before)} if before else {}), turn)
        extra, before = {}, []
    if line is None:
        extra |= {"before": pack(before)}
        line = SystemEvent(
            subtype=SystemSubtype.USER_INPUT, extra=extra, turn=turn, index=0, end=True
        )
    elif before:
        line = msgspec.structs.replace(line, extra=(line.extra or {}) | {"after": pack(before)})
    yield line


def _request_line(part: Dump, extra: Dump, turn: int | None) -> MessageEvent:
    if part["part_kind"] == "user-prompt":
        content = part["content"]
        is_text = isinstance(content, str)
        kept = ("content", "part_kind") if is_text else ("part_kind",)
        return SystemEvent(
            subtype=SystemSubtype.USER_INPUT,
            content=content
            if is_text
            else "\n".join(item for item in content if isinstance(item, str)),
            extra=extra | {"part": pack(_slim(part, *kept))},
            turn=turn,
            index=0,
            end=True,
        )
    content, has_succeeded = part["content"], part["outcome"] == "success"
    is_error = isinstance(content, str) and not has_succeeded
    is_kept_apart = has_big_numbers(content)
    said = ("tool_call_id", "part_kind", *(() if is_kept_apart else ("content",)))
    rest = _slim(part, *said)
    shown: Dump = {"outcome": "success" if has_succeeded else "failed", "content_file_digests": []}
    rest = _without_defaults(rest, shown)
    return ToolResultEvent(
        tool_use_id=part["tool_call_id"],
        result=None if is_error or is_kept_apart else content,
        success=has_succeeded,
        error=content if is_error else None,
        extra=extra | {"part": pack(rest)},
        turn=turn,
        index=0,
        end=True,
    )


def _rest(part: Dump, *said: str) -> Dump:
    rest = _slim(part, *said)
    return {"part": pack(rest)} if rest else {}


def _slim(dump: Dump, *said: str) -> Dump:
    """What is left without what is said elsewhere, and without what is absent anyway."""
    return {name: value for name, value in dump.items() if name not in said and value is not None}


def _numbered(
    lines: Iterable[AssistantEvent | ToolUseEvent], turn: int | None
) -> Iterator[AssistantEvent | ToolUseEvent]:
    counted = list(lines)
    for index, line in enumerate(counted):
        is_last = index == len(counted) - 1
        yield msgspec.structs.replace(line, turn=turn, index=index, end=is_last)


def _without_defaults(dump: Dump, defaults: Dump) -> Dump:
    return {
        name: value
        for name, value in dump.items()
        if name not in defaults or value != defaults[name]
    }


def result_line(
    call: ToolCallPart, answered: Answered, *, turn: int, at: datetime, begins_request: bool
) -> ToolResultEvent:
    """The line; the first result after an answer begins the next request to the model."""
    outcome = answered.outcome
    part: dict[str, Any] = {"tool_name": call.tool_name, "timestamp": at.isoformat()}
    if answered.denied is not None:
        part["outcome"] = "denied"
    result, error = _whole(outcome.result), _whole(outcome.error)
    if result is None and error is None:
        result = ""  # the model gets an empty result, not none
    return ToolResultEvent(
        tool_use_id=call.tool_call_id,
        result=result,
        success=outcome.success,
        error=error,
        full_output=outcome.full_output,
        extra={**({"request": {}} if begins_request else {}), "part": part},
        turn=turn,
        index=0,
        end=True,
    )


def _whole(text: str | None) -> str | None:
    return None if text is None else whole_text(text)
