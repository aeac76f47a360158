"""Evidence of life: the end of a journal says when a job last did something, and what."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mirror.mirror_world import World
from nightherd.model.agents.state import AgentState
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.lost import with_observation
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import CheckpointSaved
from nightherd.testing.memory_reader import MemoryReader
from nightherd.testing.state_values import checkpoint, job_id, start, submit
from nightherd.views.jobs.liveness import LiveJobRow, label_of, live_job_rows, look_at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / ".nightherd")


def look(world: World, number: int = 1) -> LiveJobRow:
    reader = MemoryReader(world.rows)
    job = world.rows.get(Job, job_id(number))
    assert job is not None
    found = look_at(reader, world.journals, with_observation(job, None, None))
    (row,) = live_job_rows([found], world.clock.now())
    return row


def test_a_running_job_shows_its_last_step_and_how_far_it_may_go(world: World) -> None:
    world.apply(submit(1), start(1))
    limits = {"limits": {"turns": 50, "spend": 2_000_000}}
    world.apply(checkpoint(1, header=limits))
    world.say(1, ToolUseEvent(tool_name="Bash", input={"command": "npm test\nmore"}))
    world.clock.advance(timedelta(seconds=40))
    world.say(1, describe(CheckpointSaved(number=1, trigger="post_llm")))
    world.clock.advance(timedelta(seconds=2))

    row = look(world)

    last = row["last_event"]
    assert last is not None
    assert (last["seq"], last["type"], last["label"]) == (1, "tool_use", "Bash npm test")
    assert 2 <= last["age_seconds"] < 3
    assert (row["max_turns"], row["max_cost_usd"]) == (50, 2.0)
    assert row["job"]["id"] == job_id(1)


def test_only_the_end_of_a_journal_is_read(world: World) -> None:
    world.apply(submit(1), start(1))
    world.say(1, *(AssistantEvent(content="moo " * 50) for _ in range(2_000)))
    path = world.journals.path(job_id(1))
    data = path.read_bytes()
    path.write_bytes(b"\xff" * (len(data) // 2) + data[len(data) // 2 :])

    last = look(world)["last_event"]

    assert last is not None
    assert last["seq"] == 2_000


def test_a_job_without_a_journal_or_with_one_that_cannot_be_read_has_no_last_event(
    world: World,
) -> None:
    world.apply(submit(1), start(1))
    assert look(world)["last_event"] is None
    world.journals.path(job_id(1)).mkdir()
    assert look(world)["last_event"] is None
    assert look(world)["max_turns"] is None
    assert world.rows.get(AgentState, "grazer") is not None


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (AssistantEvent(content="\n\n  I see\x1b[31m it.\nMore"), "I see [31m it."),
        (AssistantEvent(thinking="Hm."), "Hm."),
        (AssistantEvent(), ""),
        (ToolResultEvent(result=[{"type": "text", "text": "3 passed"}]), "3 passed"),
        (ToolResultEvent(error="no such file"), "no such file"),
        (ErrorEvent(message="out of hay"), "out of hay"),
        (ToolUseEvent(tool_name="Read", input={"path": "x" * 500}), "Read " + "x" * 36),
    ],
)
def test_an_event_is_told_on_one_short_line(event: Event, label: str) -> None:
    found = label_of(event)

    assert found.startswith(label)
    assert len(found) <= 80
