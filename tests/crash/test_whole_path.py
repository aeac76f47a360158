"""`nightherd run` killed anywhere: what was shown stays, nothing runs twice, and the next command works.

Each trial kills a run, then kills what puts it right (a worker going on with the job, or the doctor), then lets
that finish, all in one state directory that every later trial goes on with. Where is decided by a seed that
each failure names: every named point once, and as many points of the system's own calls.
"""

from __future__ import annotations

import json
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
from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobQuery, JobStatus
from nightherd.state.directory import StateDirectory
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring import open_journals, open_reader
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
NEVER_BEGUN = "ended before anything of it could be recorded"
"""A remark about a job that was killed between its row and its first line; nothing is wrong with it."""
LONG_PROMPT = "Herd them. " * 7_000


@dataclass(frozen=True)
class Pasture:
    """A fleet, its state directory, and processes to run commands in."""

    folder: Path
    server: ForkServer

    @property
    def state(self) -> StateDirectory:
        return StateDirectory(root=self.folder / ".nightherd")

    def command(self, *arguments: str, **order: Any) -> Ended:
        shown = str(self.folder / "shown")
        return self.server.run(
            COMMAND, {"folder": str(self.folder), "shown": shown, "arguments": arguments, **order}
        )

    def run(self, tag: str, **order: Any) -> Ended:
        return self.command("run", "herder", "-f", "prompt", "--input", f"tag={tag}", **order)

    def go_on(self, **order: Any) -> Ended:
        return self.server.run(GO_ON, {"folder": str(self.folder), **order})

    def shown(self) -> str:
        return (self.folder / "shown").read_text()

    def jobs(self) -> dict[str, Job]:
        """Every job but the measured ones, by its tag; none is there twice, and each has its prompt."""
        reader = open_reader(self.state.root)
        try:
            jobs = reader.list_jobs(JobQuery(limit=1_000))
            texts = [reader.find_texts(job.id) for job in jobs]
        finally:
            reader.close()
        tagged = {}
        for job, text in zip(jobs, texts, strict=True):
            assert text is not None
            assert text.prompt == LONG_PROMPT
            assert text.inputs["tag"] not in tagged
            tagged[text.inputs["tag"]] = job
        return tagged

    def journal(self, job_id: JobId) -> list[Event]:
        return list(open_journals(self.state.root).read(job_id))

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
    (folder / "prompt").write_text(LONG_PROMPT)
    return Pasture(folder, server)


def points_of(ended: Ended) -> list[str]:
    assert (ended.status, ended.error) == (0, ""), ended
    return ended.said


def marks_in(text: str) -> set[str]:
    return {" ".join(line.split()[:3]) for line in text.splitlines() if line.startswith("mark ")}


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
    events = list(open_journals(pasture.state.root).read(job.id))
    said = {event.content for event in events if isinstance(event, AssistantEvent)}
    assert {line for line in shown.splitlines() if line.startswith("mark ")} <= said
    counted = {name for name in pasture.counted() if name.startswith(f"{tag}-")}
    assert counted <= set(called(events).values())
    assert "completed" not in shown or job.status is JobStatus.COMPLETED
    return events


def check_doctor_leaves_nothing(pasture: Pasture) -> None:
    ended = pasture.command("doctor", "--fix", "--verify", "--json")
    document = json.loads(pasture.shown())["data"]
    left = [
        finding
        for check in document["checks"]
        for finding in check["findings"]
        if not finding["is_fixed"] and not finding["message"].endswith(NEVER_BEGUN)
    ]
    assert (ended.status, [finding["message"] for finding in left]) == (0, [])


def check_everything_agrees(pasture: Pasture) -> None:
    """No journal is damaged, every job is over or waits, and its row is as far as its journal."""
    journals = open_journals(pasture.state.root)
    for job in pasture.jobs().values():
        findings = journals.examine(job.id)
        assert job.status is not JobStatus.RUNNING
        assert (findings.bad_lines, findings.missing) == ((), 0)
        assert findings.last_seq == job.last_seq


def check_nothing_ran_twice(pasture: Pasture, tag: str, before: set[str], kills: int) -> None:
    """A call whose result was on record ran once; one whose outcome nobody knew, at most once per kill more."""
    for name, count in pasture.counted().items():
        if name.startswith(f"{tag}-"):
            assert count == 1 if name in before else count <= 1 + kills, name


def check_a_trial(pasture: Pasture, tag: str, kind: dict[str, Any], where: tuple[int, int]) -> int:
    """Kill a run, then what puts it right, then put it right; how many processes were killed."""
    first, second = where
    assert pasture.run(tag, **kind, nth=first).status == -signal.SIGKILL, pasture.shown()
    before = answered(check_shown_is_recorded(pasture, tag))
    is_going_on = first % 2 == 0
    if is_going_on:
        ended = pasture.go_on(**kind, nth=second)
        assert pasture.go_on().status == 0
    else:
        ended = pasture.command("doctor", "--fix", **kind, nth=second)
    assert ended.status in (0, -signal.SIGKILL), ended
    check_doctor_leaves_nothing(pasture)
    check_nothing_ran_twice(pasture, tag, before, kills=2)
    check_everything_agrees(pasture)
    job = pasture.jobs().get(tag)
    assert job is None or not is_going_on or job.status is JobStatus.COMPLETED
    return 1 + (ended.status == -signal.SIGKILL)


def check_batch(
    pasture: Pasture, kind: dict[str, Any], places: list[int], random: Random, seed: str
) -> int:
    """Trials at these points; then the next command works, and the ledger is the database."""
    kills = 0
    for number, place in enumerate(places):
        where = (place, random.randint(1, SECOND))
        print(f"{seed}, trial {number}, killed at points {where}")
        kills += check_a_trial(pasture, f"t{number}", kind, where)
    assert pasture.run("last").status == 0
    check_doctor_leaves_nothing(pasture)
    state = pasture.state
    assert replayed(state, pasture.folder / "replayed.db") == contents(state.database)
    print(f"{seed}: {kills} kills")
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_killed_at_any_named_point_a_run_loses_and_doubles_nothing(
    pasture: Pasture, batch: int
) -> None:
    points = points_of(pasture.run("first"))
    assert set(points) == POINTS
    assert len(points) <= BATCHES * TRIALS

    # Each batch takes every fourth point, so that together they take them all.
    places = [*range(1 + batch, len(points) + 1, BATCHES)]
    kills = check_batch(pasture, {}, places, Random(SEED + batch), f"seed {SEED + batch}")

    assert kills >= KILLS


@pytest.mark.slow
def test_killed_at_any_system_call_a_run_loses_and_doubles_nothing(pasture: Pasture) -> None:
    kind = {"is_by_calls": True}
    points_of(pasture.run("first", **kind))
    count = len(points_of(pasture.run("second", **kind)))

    # How often the mirror writes depends on how fast the others are; the last points may not be reached.
    random = Random(SEED)
    places = random.sample(range(1, count * 4 // 5), CALLS)
    kills = check_batch(pasture, kind, places, random, f"seed {SEED}")

    assert kills >= CALLS
