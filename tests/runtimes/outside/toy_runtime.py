"""A runtime as another package brings it: it counts answers, and charges a cent for each turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from nightherd.model.agents.runtime import CostSource, RuntimeCapabilities, RuntimeName
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete, Init
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.ports import Runtime, RuntimeRequest
from nightherd.runtimes.registration import RegisteredRuntime, RuntimeContext

NAME = RuntimeName("toy")
CENT = MicroUsd(10_000)
TURNS = 3


class ToyRuntime:
    """Says in each turn how many answers are on record."""

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        yield describe(Init(runtime=NAME, runtime_session_id=f"toy-{request.job_id}"))
        known = sum(isinstance(event, AssistantEvent) for event in request.history())
        for turn in range(request.job_turns + 1, TURNS + 1):
            known += 1
            is_last = turn == TURNS
            yield AssistantEvent(
                content=f"answer {known} to {request.prompt}",
                usage=Usage(input_tokens=10, output_tokens=1, cost_microusd=CENT),
                turn=turn,
                index=0,
                end=is_last,
            )
            if is_last:
                break
            call = f"call-{request.job_id}-{turn}"
            yield ToolUseEvent(tool_name="Count", tool_use_id=call, turn=turn, index=1, end=True)
            yield ToolResultEvent(
                tool_use_id=call, result=str(known), success=True, turn=turn, index=0, end=True
            )
        yield describe(Complete(stop_reason="end_turn"))


def make(context: RuntimeContext) -> Runtime:
    return ToyRuntime()


RUNTIME = RegisteredRuntime(
    capabilities=RuntimeCapabilities(
        name=NAME, package="toy_runtime", cost=CostSource.REPORTED, uses_model=False
    ),
    make=make,
)

QUIET = RegisteredRuntime(
    capabilities=RuntimeCapabilities(name=RuntimeName("quiet")),
    make=make,
)
"""The same without a word about what it can do."""
