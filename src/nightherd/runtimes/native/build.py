"""Build: messages of the plain kinds, made directly from their lines.

Nearly everything said is text, thoughts, calls and results. To dump such lines and have pydantic validate them takes
several times as long as reading them, and values of exactly these types come out of it as they went in. What plain
lines say in `extra` is declared here (`encode.py` says what is where); one that says anything else is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from nightherd.decoding import convert
from nightherd.model.journal.event import AssistantEvent, SystemEvent, ToolResultEvent, ToolUseEvent
from nightherd.runtimes.native.encode import Dump, spell_arguments

AnswerLine = AssistantEvent | ToolUseEvent
RequestLine = SystemEvent | ToolResultEvent
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
Details = dict[str, str | int | float | bool | None]

NOTHING: Dump = {}
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""When something was said that never went through a journal."""


class Plain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing but what is declared, in exactly these types."""


class Counts(Plain, frozen=True):
    """What an answer used."""

    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    output_reasoning_tokens: int = 0
    input_audio_tokens: int = 0
    cache_audio_read_tokens: int = 0
    output_audio_tokens: int = 0
    details: dict[str, int] | None = None


class Answer(Plain, frozen=True):
    """The fields of an answer."""

    usage: Counts | None = None
    timestamp: Instant | None = None
    model_name: str | None = None
    provider_name: str | None = None
    provider_url: str | None = None
    canonical_system: str | None = None
    provider_details: Details | None = None
    provider_response_id: str | None = None
    finish_reason: Literal["stop", "length", "content_filter", "tool_call", "error"] | None = None


class Piece(Plain, frozen=True):
    """The fields of a text or a call beside itself."""

    id: str | None = None
    provider_name: str | None = None
    provider_details: Details | None = None


class Thought(Piece, frozen=True):
    """The fields of a thought beside itself."""

    signature: str | None = None


class Instructions(Plain, frozen=True):
    """Instructions by hash."""

    context: str


class Request(Plain, frozen=True):
    """The fields of a request."""

    instructions: Instructions | None = None


class Prompt(Plain, frozen=True):
    """The fields of a prompt beside itself."""

    timestamp: Instant


class Result(Prompt, frozen=True):
    """The fields of a result beside itself."""

    tool_name: str | None = None
    outcome: Literal["success", "failed", "denied"] | None = None


class LineOfText(msgspec.Struct, frozen=True):
    """`extra` of a line with a text. Fields for other readers are ignored."""

    response: Answer | None = None
    part: Piece | None = None
    whole: None = None


class LineOfThought(LineOfText, frozen=True):
    """`extra` of a line with a thought."""

    part: Thought | None = None


class LineOfCall(msgspec.Struct, frozen=True):
    """`extra` of a line with a call."""

    args: str | None = None
    part: Piece | None = None


class LineOfPrompt(msgspec.Struct, frozen=True):
    """`extra` of a line with a prompt."""

    part: Prompt | None = None
    before: None = None
    after: None = None


class LineOfResult(LineOfPrompt, frozen=True):
    """`extra` of a line with a result."""

    part: Result | None = None


def build_answer(lines: Sequence[AnswerLine]) -> ModelResponse | None:
    """The answer of these lines, or None when validation has to say what it is."""
    given, at = NOTHING, lines[0].timestamp or NEVER
    parts: list[TextPart | ThinkingPart | ToolCallPart] = []
    try:
        for line in lines:
            if isinstance(line, ToolUseEvent):
                parts.append(_call(line))
                continue
            text, thought, extra, rest = line.content, line.thinking, line.extra, NOTHING
            if extra is not None:
                beside = convert(extra, LineOfText if thought is None else LineOfThought)
                if beside.response is not None:
                    given, at = extra["response"], beside.response.timestamp or at
                if beside.part is not None:
                    rest = extra["part"]
            if text is not None and thought is None:
                parts.append(TextPart(text, **rest))
            elif thought is not None and text is None:
                parts.append(ThinkingPart(thought, **rest))
            elif text is not None or rest:
                return None
    except ValueError:
        return None
    usage = RequestUsage(**(given.get("usage") or NOTHING))
    return ModelResponse(parts, **{**given, "usage": usage, "timestamp": at})


def build_request(
    lines: Sequence[RequestLine], names: Mapping[str, str], constants: Mapping[str, Any]
) -> ModelRequest | None:
    """The request of these lines, or None as above; `names` are those of the called tools by call."""
    try:
        parts = [
            _prompt(line) if isinstance(line, SystemEvent) else _result(line, names)
            for line in lines
        ]
        instructions = convert((lines[0].extra or NOTHING).get("request", {}), Request).instructions
    except ValueError:
        return None
    if instructions is None:
        return ModelRequest(parts)
    text = constants.get(instructions.context)
    return ModelRequest(parts, instructions=text) if type(text) is str else None


def content_of(line: ToolResultEvent) -> Any:
    """The text that the model gets: the result, the error, or the one above the other."""
    if line.error is None:
        return line.result
    return line.error if line.result is None else f"{line.result}\n{line.error}"


def _call(line: ToolUseEvent) -> ToolCallPart:
    extra = line.extra or NOTHING
    args = spell_arguments(line.input, convert(extra, LineOfCall).args)
    if not line.tool_use_id or (type(args) is not dict and type(args) is not str):
        raise ValueError("a call of another kind")
    return ToolCallPart(line.tool_name, args, line.tool_use_id, **(extra.get("part") or NOTHING))


def _prompt(line: SystemEvent) -> UserPromptPart:
    beside = convert(line.extra or NOTHING, LineOfPrompt)
    return UserPromptPart(line.content or "", timestamp=_sent_at(line, beside.part))


def _result(line: ToolResultEvent, names: Mapping[str, str]) -> ToolReturnPart:
    call, content = line.tool_use_id, content_of(line)
    if not call or type(content) is not str:
        raise ValueError("a result of another kind")
    part = convert(line.extra or NOTHING, LineOfResult).part
    name = part.tool_name if part is not None else None
    outcome = part.outcome if part is not None else None
    return ToolReturnPart(
        name if name is not None else names.get(call, "unknown"),
        content,
        call,
        timestamp=_sent_at(line, part),
        outcome=outcome or ("success" if line.success is not False else "failed"),
    )


def _sent_at(line: RequestLine, part: Prompt | None) -> datetime:
    return part.timestamp if part is not None else line.timestamp or NEVER
