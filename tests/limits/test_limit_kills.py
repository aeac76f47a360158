"""Killed anywhere between two writes, a limited job keeps to its limit, and no cent is lost or counted twice.

Each trial kills a run at one point of its way, then kills whoever goes on with it, then lets the job go on to its
limit and, raised, to its end. Where is decided by a seed that each failure names.
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

from crash.whole_trials import COMMAND, GO_ON
from nightherd.model.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.job import Job, JobQuery, JobStatus
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring import open_journals, open_reader

SEED = 20_261_115
TRIALS = 8
BATCHES = 4
LIMIT = 50_000
TURN = 20_000

FLEET = """\
fleet: {name: limited}
limits: {per_day: 1000}
agents:
  - name: spender
    runtime: scripted
    allowed_tools: [Bash]
    limits: {spend: 0.05}
    script:
      - repeat: 4
        steps:
          - say: on it
          - tool: Bash
            input: {command: "echo ${inputs.tag}-${turn} >> counter"}
          - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.02}
"""


@dataclass(frozen=True)
class Purse:
    """A fleet of one agent with a limit, and processes to run commands in."""

    folder: Path
    server: ForkServer

    def command(self, *arguments: str, **order: Any) -> Ended:
        shown = str(self.folder / "shown")
        return self.server.run(
            COMMAND, {"folder": str(self.folder), "shown": shown, "arguments": arguments, **order}
        )

    def run(self, tag: str, **order: Any) -> Ended:
        return self.command("run", "spender", "-p", "go", "--input", f"tag={tag}", **order)

    def go_on(self, **order: Any) -> Ended:
        return self.server.run(GO_ON, {"folder": str(self.folder), **order})

    def shown(self) -> str:
        return (self.folder / "shown").read_text()

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
def purse(tmp_path: Path, server: ForkServer) -> Purse:
    folder = tmp_path / "purse"
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(FLEET)
    return Purse(folder, server)


def cost_in(events: list[Event]) -> int:
    """What the answers on record cost."""
    answers = [event.usage for event in events if isinstance(event, AssistantEvent)]
    return sum(usage.cost_microusd for usage in answers if usage is not None)


def answered(events: list[Event]) -> set[str]:
    """What the calls counted whose results are on record."""
    calls = {
        event.tool_use_id: event.input["command"].split()[1]
        for event in events
        if isinstance(event, ToolUseEvent)
    }
    return {calls[event.tool_use_id] for event in events if isinstance(event, ToolResultEvent)}


def check_money(purse: Purse) -> None:
    """The job's row, its session's, its executions' and the day's say what its record says."""
    reader = open_reader(purse.folder / ".nightherd")
    try:
        jobs = reader.list_jobs(JobQuery(limit=1_000))
        for job in jobs:
            assert job.cost_microusd == cost_in(purse.journal(job))
            session = reader.find_session(job.session_id) if job.session_id else None
            assert session is not None
            assert session.cost_microusd == job.cost_microusd
            executions = reader.list_executions(job.id)
            assert sum(one.cost_microusd for one in executions) == job.cost_microusd
            last = purse.journal(job)[-1].seq
            assert all(one.seq <= last for one in reader.list_checkpoints(job.id))
        ever = reader.spent(None, None, None)
        assert ever.spend == sum(job.cost_microusd for job in jobs)
        assert ever.turns == sum(job.turns for job in jobs)
    finally:
        reader.close()


def check_a_trial(purse: Purse, tag: str, first: int, second: int) -> int:
    """Kill a run and whoever goes on with it; how many processes were killed."""
    assert purse.run(tag, nth=first).status == -signal.SIGKILL, purse.shown()
    job = purse.job(tag)
    if job is None:
        return 1
    before = answered(purse.journal(job))
    ended = purse.go_on(nth=second)
    assert ended.status in (0, -signal.SIGKILL), ended
    assert purse.go_on().status == 0
    waiting = purse.job(tag)
    assert waiting is not None
    assert (waiting.status, waiting.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert waiting.cost_microusd <= LIMIT
    assert waiting.cost_microusd + TURN > LIMIT, (
        "it stopped only because nothing was left for a turn"
    )
    check_money(purse)
    raised = purse.command("jobs", "resume", waiting.id, "--raise", "spend=1", "--quiet")
    assert raised.status == 0, purse.shown()
    done = purse.job(tag)
    assert done is not None
    assert (done.status, done.turns) == (JobStatus.COMPLETED, 4)
    check_money(purse)
    for name, count in purse.counted().items():
        if name.startswith(f"{tag}-"):
            # A call whose result was on record ran once; one whose outcome nobody knew is not made again.
            assert count == 1, (name, name in before)
    return 1 + (ended.status == -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_killed_at_any_point_a_limit_holds_and_money_is_counted_once(
    purse: Purse, batch: int
) -> None:
    whole = purse.run("first")
    assert whole.status == 6, purse.shown()
    points = len(whole.said)
    random = Random(SEED + batch)
    places = sorted(random.sample(range(1, points + 1), TRIALS))
    kills = 0
    for number, place in enumerate(places):
        second = random.randint(1, 40)
        print(
            f"seed {SEED + batch}, trial {number}, killed at points {place} of {points}, then {second}"
        )
        kills += check_a_trial(purse, f"t{number}", place, second)
    print(f"seed {SEED + batch}: {kills} kills")
    assert kills >= TRIALS
