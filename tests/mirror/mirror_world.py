"""A small fleet's life for the mirror: changes decided by the model, journals on disk, a feed in a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from model.checked_rows import CheckedRows
from nightherd.files.yaml_load import load_yaml
from nightherd.journal.files import JournalFiles
from nightherd.mirror.follower import MirrorFollower
from nightherd.model.agents.agent import Durability
from nightherd.model.change import Applied, Change, Row
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.changes import RecordRuntimeSession
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import End, ExecutionStarted, Init, SystemSubtype
from nightherd.ports import LedgerEntry
from nightherd.state.table import Table
from nightherd.state.tables import table_of
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_reader import MemoryReader
from nightherd.testing.state_values import BEGINNING, job_id


class ListFeed:
    """The change feed, in a list; `damage` is raised by the next reading."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.damage: Exception | None = None
        self.read_from: list[int] = []

    def read(self, *, after: int = 0) -> Iterator[LedgerEntry]:
        self.read_from.append(after)
        if self.damage is not None:
            raise self.damage
        yield from self.entries[after:]

    def add(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        number = len(self.entries) + 1
        raw = [(table, msgspec.Raw(msgspec.json.encode(row))) for table, row in rows]
        self.entries.append(LedgerEntry(change=number, at=BEGINNING, kind="Test", rows=raw))


class World:
    """A state directory, and everything that happens in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.feed = ListFeed()
        self.rows = CheckedRows()
        self.journals = JournalFiles(
            root / "jobs",
            root / "blobs",
            clock=self.clock,
            durability=Durability.PROCESS,
            probe=lambda point: None,
        )
        for name in ("jobs", "blobs", "sessions"):
            (root / name).mkdir(parents=True)

    def apply(self, *changes: Change) -> Job | None:
        """Apply changes; the job the last one is about."""
        job = None
        for change in changes:
            answer = self.rows.apply(change)
            assert isinstance(answer, Applied), answer
            self.feed.add([image_of(row) for row in answer.rows])
            job = answer.job
        return job

    def put(self, *rows: Row) -> None:
        """Write these rows as they are, as no change would."""
        self.rows.write(rows)
        self.feed.add([image_of(row) for row in rows])

    def find_job(self, number: int) -> Job:
        """A job's row."""
        job = self.rows.get(Job, job_id(number))
        assert job is not None
        return job

    def say(self, number: int, *events: Event, epoch: int = 1) -> None:
        """Append events to a job's journal."""
        job = job_id(number)
        execution = generate_execution_id(job, epoch)
        journal = self.journals.open(job, epoch=epoch, execution=execution)
        for event in events:
            journal.append(event)
        journal.close()

    def open_record(self, number: int, *, session: str | None, prompt: str = "Graze.") -> None:
        """The lines every record begins with."""
        self.say(
            number,
            describe(ExecutionStarted(worker="worker-00000001")),
            SystemEvent(subtype=SystemSubtype.USER_INPUT, content=prompt, message=1, end=True),
            describe(Init(runtime="scripted", runtime_session_id=session, model="sheepdog-1")),
        )

    def name_session(self, number: int, name: str) -> None:
        """The runtime has said which session it is in."""
        self.apply(
            RecordRuntimeSession(
                job_id=job_id(number), epoch=1, runtime_session_id=name, at=BEGINNING
            )
        )

    def follower(self, **options: Any) -> MirrorFollower:
        """A follower of this world."""
        reader = MemoryReader(self.rows)
        return MirrorFollower(
            self.root, self.feed, reader, self.journals, clock=self.clock, **options
        )

    def catch_up(self, **options: Any) -> None:
        """Mirror everything, by a follower of its own, and see that all went well."""
        standing = self.follower(**options).catch_up()
        assert standing.is_ours
        assert standing.unwritten == {}
        assert standing.notices == ()
        assert standing.change == len(self.feed.entries)

    def state(self) -> Any:
        return load_yaml((self.root / "state.yaml").read_text())

    def agent(self, name: str = "grazer") -> Any:
        return self.state()["agents"][name]

    def job(self, number: int) -> Any:
        return load_yaml((self.root / "jobs" / f"{job_id(number)}.yaml").read_text())

    def session(self, name: str) -> Any:
        return json.loads((self.root / "sessions" / f"{name}.json").read_bytes())

    def transcript(self, name: str, slug: str = "-pasture") -> list[Any]:
        path = self.root / "projects" / slug / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def files(self) -> dict[str, bytes]:
        """Every file of the mirror but its own memory, and what is in it."""
        found = [
            self.root / "state.yaml",
            *self.root.glob("jobs/*.yaml"),
            *self.root.glob("sessions/*.json"),
            *self.root.glob("projects/*/*.jsonl"),
        ]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


def image_of(row: Row) -> tuple[str, dict[str, Any]]:
    """A row as the ledger has it."""
    table: Table[Any] = table_of(type(row))
    return table.name, dict(table.image(row))


def answer(text: str, *, message: int, turn: int = 1) -> AssistantEvent:
    """A whole answer of the model."""
    return AssistantEvent(content=text, message=message, turn=turn, end=True)


def end(status: str = "completed", exit_reason: str = "success") -> SystemEvent:
    """The last line of a record."""
    return describe(End(status=status, exit_reason=exit_reason))


def ids(*numbers: int) -> list[JobId]:
    """The ids of these jobs."""
    return [job_id(number) for number in numbers]
