"""Retell: a message on record that cannot be read any more, as far as the named fields of its lines say it.

A record must never be a dead end. What was said, called and answered is there in plain fields; what only
pydantic-ai could have read again is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
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
from nightherd.runtimes.native.build import instant
from nightherd.runtimes.native.decode import load
from nightherd.runtimes.native.dump import Dump

UNREADABLE = "(what stood here cannot be read any more)"
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def load_or_retell(dumps: Iterable[Dump]) -> tuple[list[ModelMessage], int]:
    """The messages of these dumps, and how many of them had to be retold."""
    given = list(dumps)
    try:
        return load(given), 0
    except InvalidValueError:
        pass
    messages, retold = [], 0
    for dump in given:
        try:
            messages += load([dump])
        except InvalidValueError:
            messages.append(retell(dump))
            retold += 1
    return messages, retold


def retell(dump: Dump) -> ModelMessage:
    """The message of the dump, made of nothing but texts, calls and results; never without any."""
    at = instant(dump.get("timestamp")) or NEVER
    if dump["kind"] == "response":
        said = list(_said(dump["parts"]))
        return ModelResponse(said or [TextPart(UNREADABLE)], timestamp=at)
    asked = list(_asked(dump["parts"]))
    return ModelRequest(asked or [UserPromptPart(UNREADABLE, timestamp=at)])


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
        at = instant(part.get("timestamp")) or NEVER
        match part:
            case {"part_kind": "user-prompt", "content": content}:
                yield UserPromptPart(_text(content), timestamp=at)
            case {"part_kind": "tool-return", "tool_name": str(name), "tool_call_id": str(call)}:
                yield ToolReturnPart(name, _text(part.get("content")), call, timestamp=at)
            case _:
                pass


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
