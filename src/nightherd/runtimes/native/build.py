"""Build: messages of the plain kinds, made directly from their dumps.

Nearly everything said is text, calls and results. pydantic's validation of a long conversation takes longer than
reading it; values of exactly these types come out of it as they went in. What is anything else, or not of the type
it should be, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from nightherd.runtimes.native.dump import Dump

COUNTED = frozenset(field.name for field in fields(RequestUsage) if field.name.endswith("_tokens"))
TEXTS = ("model_name", "provider_name", "provider_url", "provider_response_id")
ANSWER = frozenset({"usage", "timestamp", "parts", "kind", *TEXTS})
REQUEST = frozenset({"parts", "kind", "instructions"})
OUTCOMES = frozenset({"success", "failed", "denied"})


def build(dump: Dump) -> ModelMessage | None:
    """The message, or None when validation has to say what it is."""
    is_answer = dump.get("kind") == "response"
    if not dump.keys() <= (ANSWER if is_answer else REQUEST):
        return None
    parts: list[Any] = []
    for given in dump["parts"]:
        make = (ANSWER_PARTS if is_answer else REQUEST_PARTS).get(given.get("part_kind"))
        part = make(given) if make is not None else None
        if part is None:
            return None
        parts.append(part)
    return _answer(dump, parts) if is_answer else _request(dump, parts)


def _answer(dump: Dump, parts: list[Any]) -> ModelResponse | None:
    usage, at = dump.get("usage", {}), instant(dump.get("timestamp"))
    if at is None:
        return None
    for name, count in usage.items():
        if type(count) is not int or name not in COUNTED:
            return None
    texts = {name: dump[name] for name in TEXTS if name in dump}
    for text in texts.values():
        if type(text) is not str:
            return None
    return ModelResponse(parts, usage=RequestUsage(**usage), timestamp=at, **texts)


def _request(dump: Dump, parts: list[Any]) -> ModelRequest | None:
    told = dump.get("instructions")
    return ModelRequest(parts, instructions=told) if told is None or type(told) is str else None


def _text(given: Dump) -> TextPart | None:
    if len(given) != 2 or type(given.get("content")) is not str:
        return None
    return TextPart(given["content"])


def _call(given: Dump) -> ToolCallPart | None:
    name, args, call = given.get("tool_name"), given.get("args"), given.get("tool_call_id")
    if len(given) != 4 or type(name) is not str or type(call) is not str or not call:
        return None
    if type(args) is not dict and type(args) is not str:
        return None
    return ToolCallPart(name, args, call)


def _result(given: Dump) -> ToolReturnPart | None:
    name, content, call = given.get("tool_name"), given.get("content"), given.get("tool_call_id")
    outcome, at = given.get("outcome"), instant(given.get("timestamp"))
    if len(given) != 6 or at is None or outcome not in OUTCOMES:
        return None
    if type(name) is not str or type(content) is not str or type(call) is not str or not call:
        return None
    return ToolReturnPart(name, content, call, timestamp=at, outcome=outcome)


def _prompt(given: Dump) -> UserPromptPart | None:
    at = instant(given.get("timestamp"))
    if len(given) != 3 or at is None or type(given.get("content")) is not str:
        return None
    return UserPromptPart(given["content"], timestamp=at)


def instant(text: Any) -> datetime | None:
    """A time in UTC as dumps have it; any other spelling is not for here."""
    if type(text) is not str or not text.endswith(("Z", "+00:00")):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is UTC else None


ANSWER_PARTS: Mapping[Any, Callable[[Dump], Any]] = {"text": _text, "tool-call": _call}
REQUEST_PARTS: Mapping[Any, Callable[[Dump], Any]] = {
    "tool-return": _result,
    "user-prompt": _prompt,
}
