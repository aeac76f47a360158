"""A native job killed at any point of any write: no call is made twice, no turn is lost, and money adds up.

Each trial kills a run, kills the worker that goes on with it, and lets the next one finish. Unlike a script that
is played by itself, a native agent is told of a call that was cut off: it is never made again.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crash.native_trials import COMMAND, GO_ON
from nightherd.model.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.job import Job, JobQuery, JobStatus
from nightherd.model.secret import find_secrets
from nightherd.runtimes.native.conversation import recall
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring import open_journals, open_reader

SEED = 20_261_115
BATCHES = 4
TRIALS = 12
"""Kills of a first run in each batch; most trials kill a second time."""
SECOND = 30
"""How far the worker that goes on gets before it is killed too, at most."""

FLEET = """\
agents:
  - name: herder
    runtime: native
    allowed_tools: [Bash]
    script:
      - say: mark one
      - tool: Bash
        input: {command: "echo ${inputs.tag}-one >> counter"}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: mark two
      - tool: Bash
        input: {command: "echo ${inputs.tag}-two >> counter"}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: mark three
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
"""
TURN_COST = 1_000


@dataclass(frozen=True)
class Pasture:
    """A fleet, its state directory, and processes to run commands in."""

    folder: Path
    server: ForkServer

    def run(self, tag: str, **order: Any) -> Ended:
        arguments = ["run", "herder", "-p", "go", "--input", f"tag={tag}"]
        shown = str(self.folder / "shown")
        return self.server.run(
            COMMAND, {"folder": str(self.folder), "shown": shown, "arguments": arguments, **order}
        )

    def go_on(self, **order: Any) -> Ended:
        return self.server.run(GO_ON, {"folder": str(self.folder), **order})

    def job(self, tag: str) -> Job | None:
        reader = open_reader(self.folder / ".nightherd")
        try:
            for job in reader.list_jobs(JobQuery(limit=1_000)):
                texts = reader.find_texts(job.id)
                if texts is not None and texts.inputs["tag"] == tag:
                    return job
        finally:
            reader.close()
        return None

    def journal(self, job: Job) -> list[Event]:
        return list(open_journals(self.folder / ".nightherd").read(job.id))

    def counted(self) -> Counter[str]:
        counter = self.folder / "counter"
        return Counter(counter.read_text().split()) if counter.exists() else Counter()


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


@pytest.fixture
def pasture(tmp_path: Path, server: ForkServer) -> Pasture:
    folder = tmp_path / "pasture"
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(FLEET)
    return Pasture(folder, server)


def ended_answers(events: list[Event]) -> list[int]:
    """The turns of the answers that are whole on record."""
    return [
        event.turn or 0
        for event in events
        if isinstance(event, AssistantEvent | ToolUseEvent) and event.end
    ]


def check_record(job: Job, events: list[Event]) -> None:
    """The record of a job that has come to its end, however often it was killed on the way."""
    assert ended_answers(events) == [1, 2, 3], "every turn once, in order"
    calls = [event.tool_use_id for event in events if isinstance(event, ToolUseEvent) and event.end]
    results = [event.tool_use_id for event in events if isinstance(event, ToolResultEvent)]
    assert set(results) == set(calls)
    first_lines = [
        event for event in events if isinstance(event, AssistantEvent) and event.index == 0
    ]
    asked = sum(event.usage is not None for event in first_lines)
    assert job.cost_microusd == asked * TURN_COST, "what the model was asked for, and nothing else"
    assert job.turns == 3
    conversation = recall(events, find_secrets({})).messages
    assert [message.kind for message in conversation] == ["request", "response"] * 3


def check_trial(pasture: Pasture, tag: str, where: tuple[int, int]) -> int:
    """Kill a run, then who goes on with it, then let it finish; how many processes were killed."""
    first, second = where
    killed = [pasture.run(tag, nth=first), pasture.go_on(nth=second)]
    assert all(one.status in (0, -signal.SIGKILL) for one in killed), killed
    finished = pasture.go_on()
    assert finished.status == 0, finished.error
    job = pasture.job(tag)
    if job is not None:
        assert job.status is JobStatus.COMPLETED, job
        check_record(job, pasture.journal(job))
    assert all(count == 1 for count in pasture.counted().values()), "no call is made twice"
    return sum(one.status == -signal.SIGKILL for one in killed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_killed_at_any_point_a_native_job_loses_and_doubles_nothing(
    pasture: Pasture, batch: int
) -> None:
    assert pasture.run("first").status == 0
    whole = pasture.run("second")
    assert (whole.status, whole.error) == (0, ""), whole
    count = len(whole.said)
    random = Random(SEED + batch)

    # Spread over the whole run: each batch takes other points, and together they leave no stretch out.
    step = count / (TRIALS * BATCHES)
    places = [int(1 + step * (number * BATCHES + batch)) for number in range(TRIALS)]
    kills = 0
    for number, place in enumerate(places):
        where = (place, random.randint(1, SECOND))
        print(f"seed {SEED + batch}, trial {number}, killed at points {where} of {count}")
        kills += check_trial(pasture, f"t{number}", where)

    # A slow run passes a point or two more than a fast one: the last place may lie behind its end.
    print(f"seed {SEED + batch}: {kills} kills")
    assert kills >= TRIALS
