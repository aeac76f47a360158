"""Turns that cost something, as runtimes tell them."""

from __future__ import annotations

from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

CENT = 10_000


def used(cents: int, tokens: int = 10) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=tokens, cost_microusd=MicroUsd(cents * CENT))


def turn(number: int, *, cents: int = 10) -> tuple[Event, ...]:
    """A turn of a runtime that does not ask: an answer, a call, its result."""
    call = f"call-{number}"
    return (
        AssistantEvent(content=f"turn {number}", usage=used(cents), turn=number, index=0),
        ToolUseEvent(tool_name="Bash", tool_use_id=call, turn=number, index=1, end=True),
        ToolResultEvent(tool_use_id=call, success=True, turn=number, index=0, end=True),
    )


END: tuple[Event, ...] = (
    AssistantEvent(content="done", usage=used(10), turn=4, index=0, end=True),
    describe(Complete(stop_reason="end_turn")),
)
FOUR_TURNS = (*turn(1), *turn(2), *turn(3), *END)
