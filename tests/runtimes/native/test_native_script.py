"""A script as the model of a native agent: no key, no network, the same turns every time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nightherd.model.agents.script import (
    End,
    Fail,
    Repeat,
    Say,
    Sleep,
    Spend,
    Step,
    Think,
    UseTool,
    compile_script,
)
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import Complete
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from runtimes.native.native_stage import JOB, NativeStage, of_type, results

WRITE = UseTool("Write", {"file_path": "a-${turn}.txt", "content": "${prompt}"})


def play(stage: NativeStage, *steps: Step, **more: Any) -> list[Event]:
    return stage.run(None, stage.request(agent={"script": compile_script(steps)}, **more))


def complete(events: list[Event]) -> Complete:
    assert isinstance(events[-1], SystemEvent), events[-1]
    payload = payload_of(events[-1])
    assert isinstance(payload, Complete)
    return payload


def test_every_turn_of_a_script_is_played(stage: NativeStage) -> None:
    events = play(stage, Think("hm"), Say("Looking."), WRITE, Say("One."), Say("Two."))

    said = [line.content for line in of_type(events, AssistantEvent) if line.content]
    assert said == ["Looking.", "One.", "Two."]
    assert of_type(events, AssistantEvent)[0].thinking == "hm"
    assert (stage.directory / "a-1.txt").read_text() == "go"
    assert complete(events).stop_reason == "end_turn"


def test_usage_and_cost_are_what_the_script_says(stage: NativeStage) -> None:
    used = Usage(
        input_tokens=10,
        output_tokens=5,
        cache_creation_input_tokens=2,
        cache_read_input_tokens=3,
        cost_microusd=MicroUsd(12_345),
    )

    events = play(stage, Say("x"), Spend(used), Say("y"))

    first, second = of_type(events, AssistantEvent)
    assert (first.usage, second.usage) == (used, Usage())
    assert first.extra["cost_source"] == "script"
    assert complete(events).usage == used


def test_before_a_turn_its_own_cost_is_reserved(stage: NativeStage) -> None:
    asked: list[int | None] = []

    async def note(microusd: int | None, tokens: int) -> None:
        asked.append(microusd)

    spend = [Spend(Usage(cost_microusd=MicroUsd(amount))) for amount in (100, 200)]
    play(stage, Say("x"), spend[0], Say("y"), spend[1], may_spend=note)

    assert asked == [100, 200]


def test_a_resumed_job_goes_on_at_its_place(stage: NativeStage) -> None:
    steps: list[Step] = [Say("One."), WRITE, Say("Two."), Say("Three.")]

    events = play(stage, *steps, session_turns=2, job_turns=1)

    lines = of_type(events, AssistantEvent)
    assert [line.content for line in lines] == ["Three."]
    assert [line.turn for line in lines] == [2]


def test_a_job_ends_where_the_script_says_and_the_next_one_plays_on(stage: NativeStage) -> None:
    steps = (Say("One."), End(), Say("Two."), Say("Three."))

    first = play(stage, *steps)
    killed_at_its_end = play(stage, *steps, session_turns=1, job_turns=1)
    second = play(stage, *steps, session_turns=1)

    said = [
        [line.content for line in of_type(events, AssistantEvent)] for events in (first, second)
    ]
    assert said == [["One."], ["Two.", "Three."]]
    assert complete(first).stop_reason == "end_turn"
    assert of_type(killed_at_its_end, AssistantEvent) == []
    assert complete(killed_at_its_end).stop_reason == "end_turn"


def test_a_script_that_is_over_is_said_so(stage: NativeStage) -> None:
    assert complete(play(stage, Say("One."), session_turns=1)).stop_reason == "script_finished"


def test_calls_are_named_by_job_and_turn(stage: NativeStage) -> None:
    events = play(stage, Repeat(2, (WRITE,)), job_turns=4)

    names = [line.tool_use_id for line in of_type(events, ToolUseEvent)]
    assert names == [f"toolu_{JOB}_5", f"toolu_{JOB}_6"]
    assert all(result.success for result in results(events))


def test_a_script_can_fail(stage: NativeStage) -> None:
    error = play(stage, Say("x"), Fail("rate_limited", "too much of ${prompt}"))[-1]

    assert isinstance(error, ErrorEvent)
    assert (error.code, error.message) == ("rate_limited", "too much of go")


def test_a_value_that_is_missing_fails_the_turn(stage: NativeStage) -> None:
    error = play(stage, Say("${inputs.absent}"))[-1]

    assert isinstance(error, ErrorEvent)
    assert error.code == "template"


@pytest.mark.parametrize("steps", [(Sleep(timedelta(milliseconds=1)),), (Think("hm"),)])
def test_a_turn_that_says_nothing_is_a_turn_all_the_same(
    stage: NativeStage, steps: tuple[Step, ...]
) -> None:
    events = play(stage, *steps)

    assert [line.turn for line in of_type(events, AssistantEvent) if line.end] == [1]
    assert complete(events).stop_reason == "end_turn"
