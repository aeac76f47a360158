"""Asking a model for one answer: streamed, never waited for without end, and looked at before it counts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import anyio
import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from nightherd.errors import InvalidValueError
from nightherd.model.text import whole_text, whole_value
from nightherd.ports import NoTextStream, TextStream
from nightherd.runtimes.native.failure import RunFailure
from nightherd.runtimes.native.price import believable

_T = TypeVar("_T")

USAGE_S = 2.0
"""How often what a long answer has used so far is put on record: a kill costs no more than that."""

NOT_UNDERSTOOD = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What a provider's client raises when that which came is no JSON, or not of the shape that it takes for granted."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and how long the model may be silent."""

    model: Model
    messages: Sequence[ModelMessage]
    settings: ModelSettings
    parameters: ModelRequestParameters
    patience: timedelta


class Question(msgspec.Struct):
    """One request. Iterating over `progress` asks it; after that `answer` is there, or it has raised."""

    asking: Asking
    stream: TextStream = msgspec.field(default_factory=NoTextStream)
    """Takes the text as it arrives."""
    answer: ModelResponse | None = None
    usage: RequestUsage = msgspec.field(default_factory=RequestUsage)
    """What the provider has said to have been used, also when the answer was cut off."""
    is_sent: bool = False
    has_begun: bool = False
    """Whether the provider has taken the request: nothing is paid for one that it refused."""
    heard: int = 0
    """Bytes of what has arrived: text, thoughts, arguments of calls."""
    said: list[str] = msgspec.field(default_factory=list)
    """Pieces of text that have arrived."""

    @property
    def text(self) -> str:
        """Text that has arrived; what is left of an answer that broke off."""
        return "".join(self.said)

    async def progress(self) -> AsyncGenerator[None, None]:
        """Ask. Yields now and then while a long answer arrives; never for a short one."""
        asking = self.asking
        messages = asking.model.prepare_messages(list(asking.messages), asking.parameters)
        self.is_sent = True
        async with AsyncExitStack() as opened:
            stream = await self._patiently(
                opened.enter_async_context(
                    asking.model.request_stream(messages, asking.settings, asking.parameters)
                )
            )
            self.has_begun = True
            events = aiter(stream)
            due = anyio.current_time() + USAGE_S
            self.stream.begin()
            while (event := await self._next(events, stream)) is not None:
                said = _text_in(event)
                self.heard += len((said or _unseen_in(event)).encode(errors="replace"))
                if said and isinstance(event, PartStartEvent | PartDeltaEvent):
                    self.said.append(said)
                    self.stream.add(event.index, said)
                if anyio.current_time() >= due:
                    yield
                    due = anyio.current_time() + USAGE_S
            self.answer = stream.get()

    async def _next(
        self, events: AsyncIterator[ModelResponseStreamEvent], stream: StreamedResponse
    ) -> ModelResponseStreamEvent | None:
        try:
            return await self._patiently(anext(events, None))
        finally:
            self.usage = believable(stream.usage)

    async def _patiently(self, work: Awaitable[_T]) -> _T:
        limit = self.asking.patience.total_seconds()
        with anyio.move_on_after(limit):
            try:
                return await work
            except InvalidValueError:
                raise
            except NOT_UNDERSTOOD as error:
                message = f"the response is not an answer: {type(error).__name__}: {error}"
                raise RunFailure("malformed_answer", message, recoverable=True) from error
        raise RunFailure(
            "stalled",
            f"the model sent nothing for {limit:g} s, and the request was cancelled",
            recoverable=True,
        )


def check(answer: ModelResponse) -> RunFailure | None:
    """Why the answer is of no use; None when the conversation can continue with it."""
    match answer.finish_reason:
        case "content_filter":
            return RunFailure("refused", "the provider refused to answer this conversation")
        case "error":
            return RunFailure("server_error", "the provider broke off", recoverable=True)
        case _:
            pass
    if any(isinstance(part, ToolCallPart) for part in answer.parts):
        return None
    if answer.finish_reason == "length":
        return RunFailure("output_limit", "the answer was cut off where it had become too long")
    if not any(isinstance(part, TextPart) for part in answer.parts) and not answer.files:
        return RunFailure("empty_answer", "the model returned an empty answer", recoverable=True)
    return None


def is_cut_off(call: ToolCallPart, answer: ModelResponse | None) -> bool:
    """Whether an answer of full length was cut off in this call: its input may lack something, or everything.

    The calls before it are whole. They run: the answer stays in the conversation, so it is not asked for again,
    unlike one that a limit cut short (reserve.py), none of whose calls runs.
    """
    if answer is None or answer.finish_reason != "length" or not answer.parts:
        return False
    last = answer.parts[-1]
    return isinstance(last, ToolCallPart) and last.tool_call_id == call.tool_call_id


def _text_in(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=str(text))):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=str(text))):
            return text
        case _:
            return ""


def _unseen_in(event: ModelResponseStreamEvent) -> str:
    """What is paid for as text is, and is no piece of an answer by itself."""
    match event:
        case PartStartEvent(part=ThinkingPart(content=str(text))):
            return text
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return text
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
            return text
        case _:
            return ""


def repair_answer(answer: ModelResponse) -> ModelResponse:
    """The answer; the same object when there is nothing to repair. What cannot be repaired is left as it is."""
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
            named = (part.tool_name, part.args, part.tool_call_id)
            name, args, call = _name(part.tool_name), _arguments(part.args), _name(named[2])
            if all(new is old for new, old in zip((name, args, call), named, strict=True)):
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
