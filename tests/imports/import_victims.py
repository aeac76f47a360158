"""Imports that are killed at a named point: what the fork server runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.imports import jobs as adopt_jobs
from nightherd.engine.imports import runs as adopt_runs
from nightherd.engine.imports import transcripts as adopt_transcripts
from nightherd.engine.imports.context import ImportContext, ImportWriters, Report
from nightherd.imports.claude import find_transcripts
from nightherd.imports.herdctl import read_fleet
from nightherd.imports.lastlight import opened_workflows
from nightherd.imports.shelf import Draft, TranscriptCopies
from nightherd.journal.files import JournalFiles
from nightherd.journal.finished import FinishedJournalFiles
from nightherd.model.change import Answer, Change
from nightherd.model.secrets import find_secrets
from nightherd.ports import Probe
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say

BATCH = 2
"""Small, so that every trial has several."""


class ProbedDraft:
    """A draft with a probe before and after each step."""

    def __init__(self, draft: Draft, reach: Probe) -> None:
        self._draft, self._reach = draft, reach

    @property
    def extends_old(self) -> bool:
        return self._draft.extends_old

    def write(self, block: bytes) -> None:
        self._draft.write(block[: len(block) // 2])
        self._reach("shelf.half_written")
        self._draft.write(block[len(block) // 2 :])

    def keep(self) -> None:
        self._draft.keep()
        self._reach("shelf.kept")


class ProbedShelf:
    """A shelf with a probe at each step."""

    def __init__(self, shelf: TranscriptCopies, reach: Probe) -> None:
        self._shelf, self._reach = shelf, reach
        self.is_current = shelf.is_current
        self.has = shelf.has

    @contextmanager
    def draft(self, name: str) -> Iterator[ProbedDraft]:
        with self._shelf.draft(name) as draft:
            yield ProbedDraft(draft, self._reach)

    def sync(self) -> None:
        self._reach("shelf.before_sync")
        self._shelf.sync()
        self._reach("shelf.after_sync")

    def mark(self, name: str, *, modified_ns: int) -> None:
        self._reach("shelf.before_mark")
        self._shelf.mark(name, modified_ns=modified_ns)


class ProbedStore:
    """A store with a probe before and after each group of changes."""

    def __init__(self, store: SqliteStore, reach: Probe) -> None:
        self._store, self._reach = store, reach
        self.close = store.close
        self.take_notices = store.take_notices

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        self._reach("state.before")
        answers = await self._store.apply(changes)
        self._reach("state.after")
        return answers


@asynccontextmanager
async def desk_at(root: Path, reach: Probe) -> AsyncIterator[ImportContext]:
    init_state_directory(root)
    clock = FakeClock()
    store, reader = SqliteStore(root, clock, reach, outbox_limit=4), SqliteReader(root)
    try:
        yield ImportContext(
            reader=reader,
            journals=JournalFiles(root / "jobs", root / "blobs", clock=clock),
            shelf=ProbedShelf(TranscriptCopies(root / "transcripts"), reach),
            secrets=find_secrets({}),
            version="9.9.9",
            has_transcripts=CLI.can_resume,
            writers=ImportWriters(
                state=ProbedStore(store, reach),
                journals=FinishedJournalFiles(root / "jobs", root / "blobs", probe=reach),
            ),
        )
    finally:
        reader.close()
        await store.close()


async def adopt(order: dict[str, Any]) -> None:
    adopt_jobs.BATCH = adopt_transcripts.BATCH = adopt_runs.BATCH = BATCH
    source, report = Path(order["source"]), Report()
    async with desk_at(Path(order["state"]), Ending(order["point"], nth=order["nth"])) as desk:
        if order["kind"] == "claude":
            found = find_transcripts(source, report)
            await adopt_transcripts.import_transcripts(found, desk, report, lambda _: None)
        elif order["kind"] == "lastlight":
            with opened_workflows(source, report) as records:
                await adopt_runs.import_workflows(records, desk, report, lambda _: None)
        else:
            fleet = read_fleet(source, report)
            await adopt_jobs.import_fleet(fleet, desk, report, lambda _: None)


def work(order: dict[str, Any], say: Say) -> None:
    """Import what the order names, until its point is reached for the n-th time."""
    anyio.run(adopt, order)
