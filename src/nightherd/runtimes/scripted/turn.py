"""Planning a scripted turn: the events its steps come to, with run-time values filled in. Nothing is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import anyio
import msgspec

from nightherd.model.agents.script import End, Fail, Say, Sleep, Spend, Think, Turn, UseTool
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, ToolUseEvent
from nightherd.model.text import render
from nightherd.model.usage import NOTHING_USED, Usage, tokens_in
from nightherd.ports import TextStream

SCRIPT_FINISHED = "script_finished"
"""Stop reason when the session had come to the end of the script before this job began."""


class PlannedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn does, in order: wait, answer, call a tool, fail.

    A turn that neither answers nor calls still has an (empty) answer: what is not on record would be
    played again. The answer of a turn that fails has no `end`, so a failed turn is never history.
    """

    pause: timedelta = timedelta()
    over: timedelta = timedelta()
    """How long the answer takes to come."""
    answer: AssistantEvent | None = None
    call: ToolUseEvent | None = None
    failure: ErrorEvent | None = None

    @property
    def lines(self) -> list[AssistantEvent | ToolUseEvent]:
        """What it says, before anything is done."""
        return [line for line in (self.answer, self.call) if line is not None]

    @property
    def cost_microusd(self) -> int:
        """What the turn costs, known beforehand."""
        return self._usage.cost_microusd

    @property
    def tokens(self) -> int:
        """The tokens it takes, of every kind."""
        return tokens_in(self._usage)

    @property
    def _usage(self) -> Usage:
        used = self.answer.usage if self.answer is not None else None
        return used if used is not None else NOTHING_USED


def plan_turn(
    steps: Turn, *, number: int, tool_use_id: str, values: Mapping[str, str]
) -> PlannedTurn:
    """The plan of `steps` as turn `number` of its job; `InvalidValueError` when a value is missing."""
    pause, over, usage = timedelta(), timedelta(), NOTHING_USED
    texts: list[str] = []
    thoughts: list[str] = []
    tool: UseTool | None = None
    failure: ErrorEvent | None = None
    for step in steps:
        match step:
            case Sleep(duration):
                pause += duration
            case Think(text):
                thoughts.append(render(text, values))
            case Say(text, taken):
                texts.append(render(text, values))
                over += taken
            case Spend(share):
                usage += share
            case UseTool():
                tool = step
            case Fail():
                failure = _failure(step, number, values)
            case End():
                pass  # the job ends after the turn
    spent = usage if usage != NOTHING_USED else None
    has_answer = bool(texts or thoughts or spent) or not (tool or failure)
    return PlannedTurn(
        pause=pause,
        over=over,
        answer=_answer(texts, thoughts, spent, number, is_whole=not (tool or failure))
        if has_answer
        else None,
        call=_call(tool, number, tool_use_id, values, index=int(has_answer)) if tool else None,
        failure=failure,
    )


def _failure(step: Fail, number: int, values: Mapping[str, str]) -> ErrorEvent:
    facts: dict[str, object] = {"recoverable": True} if step.recoverable else {}
    if step.retry_after is not None:
        facts["retry_after_s"] = step.retry_after.total_seconds()
    return ErrorEvent(
        message=render(step.message, values), code=step.code, turn=number, extra=facts or None
    )


def failing_turn(number: int, code: str, message: str) -> PlannedTurn:
    """A turn that only fails, because it could not be played."""
    return PlannedTurn(failure=ErrorEvent(message=message, code=code, turn=number))


def _answer(
    texts: list[str], thoughts: list[str], usage: Usage | None, number: int, *, is_whole: bool
) -> AssistantEvent:
    return AssistantEvent(
        content="\n\n".join(texts) if texts else None,
        thinking="\n\n".join(thoughts) if thoughts else None,
        usage=usage,
        turn=number,
        index=0,
        end=is_whole,
    )


def _call(
    tool: UseTool, number: int, tool_use_id: str, values: Mapping[str, str], *, index: int
) -> ToolUseEvent:
    return ToolUseEvent(
        tool_name=tool.name,
        tool_use_id=tool_use_id,
        input=_fill(tool.input, values),
        turn=number,
        index=index,
        end=True,
    )


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    """`value` with every text in it rendered, however deep; names of fields stay as they are."""
    match value:
        case str():
            return render(value, values)
        case Mapping():
            return {name: _fill(inner, values) for name, inner in value.items()}
        case list() | tuple():
            return [_fill(inner, values) for inner in value]
        case _:
            return value


WORD = re.compile(r"\s*\S+\s*")


async def stream_answer(turn: PlannedTurn, stream: TextStream) -> None:
    """Stream the answer over the time that its script gives it; returns at once when it gives none."""
    text = turn.answer.content if turn.answer is not None else None
    if not turn.over or not text:
        return
    words = WORD.findall(text) or [text]
    stream.begin()
    for word in words:
        stream.add(0, word)
        await anyio.sleep(turn.over.total_seconds() / len(words))
