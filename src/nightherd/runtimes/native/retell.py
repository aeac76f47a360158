"""Retell: a message on record that cannot be read any more, as far as the named fields of its lines say it.

A record must never be a dead end. What was said, called and answered is there in plain fields; what only
pydantic-ai could have read again is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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
from nightherd.runtimes.native.build import NEVER
from nightherd.runtimes.native.decode import load
from nightherd.runtimes.native.dump import Dump

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
            messages.append(retell(one))
            retold += 1
    return messages, retold


def retell(dump: Dump) -> ModelMessage:
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
