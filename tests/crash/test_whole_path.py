"""`nightherd run` killed anywhere: what was shown stays, nothing runs twice, and the next command works.

Each trial kills a run, then kills what puts it right (a worker going on with the job, or the doctor), then lets
that finish, all in one state directory that every later trial goes on with. Where is decided by a seed that
each failure names: every named point once, and as many points of the system's own calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crash.ground import (
    Ground,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
)
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.state.directory import StateDirectory
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring.stores import open_journals, open_reader
from state.stores import contents, replayed

SEED = 20_260_102
BATCHES = 4
TRIALS = 17
"""At most, per batch: one for every fourth point of a run."""
KILLS = 22
"""At least, per batch: one at each of its points, and the second kills that came before the end."""
SECOND = 12
"""How far what puts things right gets before it is killed too, at most."""
CALLS = 16
POINTS = {
    "db.begin",
    "db.before_commit",
    "db.after_commit",
    "ledger.half_written",
    "ledger.appended",
    "journal.before_blob",
    "journal.after_blob",
    "journal.before_write",
    "journal.after_write",
    "journal.before_sync",
    "journal.after_sync",
}
"""What a run passes. A torn line and a full outbox have suites of their own."""

FLEET = """\
fleet:
  name: crash
lease: 5m
agents:
  - name: herder
    runtime: scripted
    allowed_tools: [Bash]
    script:
      - say: mark ${inputs.tag} one
      - tool: Bash
        input: {command: "echo ${inputs.tag}-one >> counter"}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: mark ${inputs.tag} two
      - tool: Bash
        input: {command: "echo ${inputs.tag}-two >> counter"}
      - say: mark ${inputs.tag} three
"""
LONG_PROMPT = "Herd them. " * 7_000


@dataclass(frozen=True)
class Pasture(Ground):
    """A fleet that is asked for the same thing each time, with a prompt too long for its row."""

    def ask(self, tag: str, **order: Any) -> Ended:
        return self.command("run", "herder", "-f", "prompt", "--input", f"tag={tag}", **order)

    def calls(self) -> Counter[str]:
        """How often each call was made."""
        counter = self.folder / "counter"
        return Counter(counter.read_text().split()) if counter.exists() else Counter()


@pytest.fixture
def pasture(command_server: ForkServer, quick_path: Path) -> Pasture:
    (quick_path / "nightherd.yaml").write_text(FLEET)
    (quick_path / "prompt").write_text(LONG_PROMPT)
    return Pasture(quick_path, command_server)


def points_of(ended: Ended) -> list[str]:
    assert (ended.status, ended.error) == (0, ""), ended
    return ended.said


def called(events: list[Event]) -> dict[str, str]:
    """What each call of the journal was about to count, by the call's id."""
    return {
        event.tool_use_id or "": event.input["command"].split()[1]
        for event in events
        if isinstance(event, ToolUseEvent)
    }


def answered(events: list[Event]) -> set[str]:
    """What the calls counted whose results are on record."""
    calls = called(events)
    return {
        calls[event.tool_use_id or ""] for event in events if isinstance(event, ToolResultEvent)
    }


def check_shown_is_recorded(pasture: Pasture, tag: str) -> list[Event]:
    """Whatever the killed run had shown is on record; its journal."""
    shown = pasture.shown()
    job = pasture.jobs().get(tag)
    told = [line.split()[1] for line in shown.splitlines() if line.startswith("job ")]
    if job is None:
        assert told == []
        return []
    assert told in ([], [job.id])
    events = list(open_journals(pasture.state).read(job.id))
    said = {event.content for event in events if isinstance(event, AssistantEvent)}
    assert {line for line in shown.splitlines() if line.startswith("mark ")} <= said
    counted = {name for name in pasture.calls() if name.startswith(f"{tag}-")}
    assert counted <= set(called(events).values())
    assert "completed" not in shown or job.status is JobStatus.COMPLETED
    return events


def check_prompts_are_whole(pasture: Pasture) -> None:
    reader = open_reader(pasture.state)
    try:
        for job in reader.list_jobs(JobQuery(limit=1_000)):
            texts = reader.find_texts(job.id)
            assert texts is not None
            assert texts.prompt == LONG_PROMPT
    finally:
        reader.close()


def check_nothing_ran_twice(pasture: Pasture, tag: str, before: set[str], kills: int) -> None:
    """A call whose result was on record ran once; one whose outcome nobody knew, at most once per kill more."""
    for name, count in pasture.calls().items():
        if name.startswith(f"{tag}-"):
            assert count == 1 if name in before else count <= 1 + kills, name


def check_a_trial(pasture: Pasture, tag: str, kind: dict[str, Any], where: tuple[int, int]) -> int:
    """Kill a run, then what puts it right, then put it right; how many processes were killed."""
    first, second = where
    asked = pasture.ask(tag, **kind, nth=first)
    # How often the mirror writes depends on how fast the others are: a late call may not be reached.
    assert is_killed(asked) or (kind and asked.status == 0), pasture.shown()
    before = answered(check_shown_is_recorded(pasture, tag))
    is_going_on = first % 2 == 0
    if is_going_on:
        ended = pasture.go_on(**kind, nth=second)
        assert pasture.go_on().status == 0
    else:
        ended = pasture.command("doctor", "--fix", **kind, nth=second)
    assert ended.status == 0 or is_killed(ended), ended
    check_doctor_leaves_nothing(pasture)
    check_nothing_ran_twice(pasture, tag, before, kills=2)
    check_rows_are_as_journals_say(pasture)
    job = pasture.jobs().get(tag)
    assert job is None or not is_going_on or job.status is JobStatus.COMPLETED
    return is_killed(asked) + is_killed(ended)


def check_batch(
    pasture: Pasture, kind: dict[str, Any], places: list[int], random: Random, seed: str
) -> int:
    """Trials at these points; then the next command works, and the ledger is the database."""
    kills = 0
    for number, place in enumerate(places):
        where = (place, random.randint(1, SECOND))
        print(f"{seed}, trial {number}, killed at points {where}")
        kills += check_a_trial(pasture, f"t{number}", kind, where)
    assert pasture.ask("last").status == 0
    check_doctor_leaves_nothing(pasture)
    check_prompts_are_whole(pasture)
    state = StateDirectory(root=pasture.state)
    assert replayed(state, pasture.folder / "replayed.db") == contents(state.database)
    print(f"{seed}: {kills} kills")
    return kills


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_killed_at_any_named_point_a_run_loses_and_doubles_nothing(
    pasture: Pasture, batch: int
) -> None:
    points = points_of(pasture.ask("first"))
    assert set(points) == POINTS
    assert len(points) <= BATCHES * TRIALS

    # Each batch takes every fourth point, so that together they take them all.
    places = [*range(1 + batch, len(points) + 1, BATCHES)]
    kills = check_batch(pasture, {}, places, Random(SEED + batch), f"seed {SEED + batch}")

    assert kills >= KILLS


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_system_call_a_run_loses_and_doubles_nothing(pasture: Pasture) -> None:
    kind = {"is_by_calls": True}
    points_of(pasture.ask("first", **kind))
    count = len(points_of(pasture.ask("second", **kind)))

    random = Random(SEED)
    places = random.sample(range(1, count * 4 // 5), CALLS)
    kills = check_batch(pasture, kind, places, random, f"seed {SEED}")

    assert kills >= CALLS
