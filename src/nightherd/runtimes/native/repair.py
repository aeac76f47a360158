"""Mend: an answer as it can stand on record, whatever a client made of what the provider sent.

Clients take servers at their word: a call's arguments may be a number, half a character may stand in a text.
What the model can be told about by itself is kept in the nearest shape that there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
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

from nightherd.errors import InvalidValueError
from nightherd.model.text import whole_text, whole_value
from nightherd.runtimes.native.build import NEVER
from nightherd.runtimes.native.decode import load
from nightherd.runtimes.native.dump import Dump
from nightherd.runtimes.native.price import believable


def repair_answer(answer: ModelResponse) -> ModelResponse:
    """The answer; the very same when there is nothing to mend. What is beyond mending is left as it is."""
    parts = [_part(part) for part in answer.parts]
    usage, given = believable(answer.usage), answer.model_name
    name = whole_text(given) if isinstance(given, str) else None
    is_whole = all(new is old for new, old in zip(parts, answer.parts, strict=True))
    if is_whole and name is given and usage is answer.usage:
        return answer
    return replace(answer, parts=parts, usage=usage, model_name=name)


def _part(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case ToolCallPart():
            told = (part.tool_name, part.args, part.tool_call_id)
            name, args, call = _name(part.tool_name), _arguments(part.args), _name(told[2])
            if all(new is old for new, old in zip((name, args, call), told, strict=True)):
                return part
            changed: dict[str, Any] = {"tool_name": name, "args": args, "tool_call_id": call}
            return replace(part, **changed)
        case TextPart(content=str(text)) | ThinkingPart(content=str(text)):
            whole = whole_text(text)
            return part if whole is text else replace(part, content=whole)
        case _:
            return part


def _name(given: Any) -> str:
    if isinstance(given, str):
        return whole_text(given)
    return "" if given is None else whole_text(_spelled(given))


def _arguments(given: Any) -> str | dict[str, Any] | None:
    if given is None:
        return None
    if isinstance(given, str):
        return whole_text(given)
    if not isinstance(given, dict):
        return whole_text(_spelled(given))
    with suppress(RecursionError):
        whole = whole_value(given)
        return given if whole == given else whole
    return given


def _spelled(value: Any) -> str:
    """As JSON, where there is any for it."""
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


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
