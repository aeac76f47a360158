"""Ground: a tiny fleet whose commands are killed at one place after another, and what has to be true of it then."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crash import native_trials
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.usage import Usage
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring.stores import open_journals, open_reader

FIRST = """\
agents:
  - name: herder
    runtime: native
    allowed_tools: [Bash]
    script:
      - tool: Bash
        input: {command: "true"}
      - say: done
"""
NEVER_BEGUN = "ended before anything of it could be recorded"
"""A remark about a job that was killed between its row and its first line; nothing is wrong with it."""
COUNTER_END = "."


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process is killed: when it comes to the point for the n-th time."""

    point: str
    nth: int


def places(said: Sequence[str]) -> list[Place]:
    """Every place that a run passes, from the points it told of."""
    counted: Counter[str] = Counter()
    found = []
    for point in said:
        counted[point] += 1
        found.append(Place(point, counted[point]))
    return found


def is_killed(ended: Ended) -> bool:
    return ended.status == -signal.SIGKILL


def prepared(server: ForkServer) -> ForkServer:
    """The server, with all that commands import on their way imported before any of them begins."""
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder), server)
        (ground.folder / "nightherd.yaml").write_text(FIRST)
        loaded = ground.folder / "loaded"
        for arguments in (["run", "herder", "-p", "go", "--input", "tag=a"], ["doctor", "--fix"]):
            ended = ground.command(*arguments, loaded=str(loaded))
            assert ended.status == 0, ground.shown()
            server.load(*json.loads(loaded.read_text()), "built_models")
    return server


@dataclass(frozen=True)
class Ground:
    """A fleet, its state directory, and processes to run commands in."""

    folder: Path
    server: ForkServer

    # Commands, each in a process of its own

    def command(self, *arguments: str, place: Place | None = None, **order: Any) -> Ended:
        """Run it; killed when it comes to `place`."""
        shown = str(self.folder / "shown")
        return self._run(native_trials.COMMAND, place, arguments=arguments, shown=shown, **order)

    def run(self, agent: str, tag: str, place: Place | None = None, **order: Any) -> Ended:
        """A job for the agent, told apart from others by its tag."""
        arguments = ("run", agent, "-p", "go", "--input", f"tag={tag}")
        return self.command(*arguments, place=place, **order)

    def go_on(self, place: Place | None = None, **order: Any) -> Ended:
        """Another process goes on with whatever was left."""
        return self._run(native_trials.GO_ON, place, **order)

    def _run(self, target: str, place: Place | None, **order: Any) -> Ended:
        where = {} if place is None else {"point": place.point, "nth": place.nth}
        return self.server.run(target, {"folder": str(self.folder), **where, **order})

    @contextmanager
    def copied(self) -> Iterator[Ground]:
        """The same once more, for one trial."""
        folder = self.folder.with_name("trial")
        shutil.copytree(self.folder, folder, symlinks=True)
        try:
            yield replace(self, folder=folder)
        finally:
            shutil.rmtree(folder)

    # What there is

    @property
    def state(self) -> Path:
        return self.folder / ".nightherd"

    def shown(self) -> str:
        return (self.folder / "shown").read_text()

    def jobs(self) -> dict[str, Job]:
        """Every job by its tag; none is there twice."""
        reader = open_reader(self.state)
        try:
            found = {}
            for job in reader.list_jobs(JobQuery(limit=1_000)):
                texts = reader.find_texts(job.id)
                assert texts is not None
                assert texts.inputs["tag"] not in found
                found[texts.inputs["tag"]] = job
            return found
        finally:
            reader.close()

    def journal(self, job: Job) -> list[Event]:
        return list(open_journals(self.state).read(job.id))

    # Counters: files that each call of a tool adds one word to

    def lay_counter(self, tag: str) -> None:
        """A file that the tool Edit can count in: it puts its word before the end."""
        (self.folder / f"counter-{tag}").write_text(COUNTER_END)

    def counted(self, tag: str) -> Counter[str]:
        return Counter((self.folder / f"counter-{tag}").read_text().split()[:-1])


# What has to be true afterwards


def check_doctor_leaves_nothing(ground: Ground) -> None:
    """The doctor finds nothing that it cannot mend, and the ledger gives the database again."""
    ended = ground.command("doctor", "--fix", "--verify", "--json")
    document = json.loads(ground.shown())["data"]
    left = [
        finding["message"]
        for check in document["checks"]
        for finding in check["findings"]
        if finding["level"] != "ok"
        and not finding["is_fixed"]
        and not finding["message"].endswith(NEVER_BEGUN)
    ]
    assert (ended.status, left) == (0, [])


def check_rows_are_as_journals_say(ground: Ground) -> None:
    """No journal is damaged, nothing is left running, each row is as far as its journal, and money agrees."""
    journals = open_journals(ground.state)
    reader = open_reader(ground.state)
    try:
        jobs = list(reader.list_jobs(JobQuery(limit=1_000)))
        for job in jobs:
            found = journals.examine(job.id)
            assert job.status is not JobStatus.RUNNING
            assert (found.bad_lines, found.missing) == ((), 0)
            assert found.last_seq == job.last_seq
            assert job.cost_microusd == cost_in(list(journals.read(job.id)))
            assert job.session_id is not None
            session = reader.find_session(job.session_id)
            assert session is not None
            assert session.cost_microusd == job.cost_microusd
            executions = reader.list_executions(job.id)
            assert sum(one.cost_microusd for one in executions) == job.cost_microusd
            assert all(one.seq <= found.last_seq for one in reader.list_checkpoints(job.id))
        ever = reader.spent(None, None, None)
        assert ever.spend == sum(job.cost_microusd for job in jobs)
        assert ever.turns == sum(job.turns for job in jobs)
    finally:
        reader.close()


def check_calls(ground: Ground, tag: str, events: Sequence[Event]) -> None:
    """A call with a result of its own on record was made once, one that was cut off at most once."""
    counted = ground.counted(tag)
    words = {
        event.tool_use_id: event.input["new_string"].split()[0]
        for event in events
        if isinstance(event, ToolUseEvent) and event.end
    }
    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert Counter(event.tool_use_id for event in results) == Counter([*words])
    assert set(counted) <= set(words.values())
    for result in results:
        count = counted[words[result.tool_use_id]]
        assert count == 1 if result.success else count <= 1, (result, count)


def cost_in(events: Sequence[Event]) -> int:
    """What the answers on record cost; and what each that never came was last taken to have cost."""
    told, under_way = 0, 0
    for event in events:
        match event:
            case AssistantEvent(partial=True, usage=Usage(cost_microusd=cost)):
                under_way = cost
            case AssistantEvent(usage=Usage(cost_microusd=cost)):
                told, under_way = told + cost, 0
            case ErrorEvent():
                under_way = 0
            case SystemEvent(subtype=SystemSubtype.EXECUTION_STARTED):
                told, under_way = told + under_way, 0
            case _:
                pass
    return told + under_way


def whole_answers(events: Sequence[Event]) -> list[int]:
    """The turns of the answers that are whole on record, in order."""
    return [
        event.turn or 0
        for event in events
        if isinstance(event, AssistantEvent | ToolUseEvent) and event.end
    ]
