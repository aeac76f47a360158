"""Mend: an answer as it can stand on record, whatever a client made of what the provider sent.

Clients take servers at their word: a call's arguments may be a number, half a character may stand in a text.
What the model can be told about by itself is kept in the nearest shape that there is.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from nightherd.model.text import whole_text, whole_value
from nightherd.runtimes.native.price import believable


def mend(answer: ModelResponse) -> ModelResponse:
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
