"""How long somebody worked at a job: the time of its executions, and none in which it only waited."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.model.change import Change, ExtendLease, RegisterWorker
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import CancelJob, LoseExecution, ResumeJob, SuspendExecution
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.usage import Totals
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import StateReader
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournals
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit
from nightherd.views.jobs.document import job_document, show_job

MORNING = 8 * 60
"""Minutes after the beginning."""
WORKER = Worker(
    id=WorkerId("worker-00000001"),
    status=WorkerStatus.ALIVE,
    host="here",
    pid=1,
    process_started="1",
    boot_id="boot",
    deadline=1.0,
    started_at=BEGINNING,
    heartbeat_at=BEGINNING,
)
SUBMITTED: list[Change] = [RegisterWorker(worker=WORKER), submit(1)]
WAITING: list[Change] = [
    *SUBMITTED,
    start(1, minute=1),
    SuspendExecution(
        job_id=job_id(1),
        epoch=1,
        at=BEGINNING + timedelta(minutes=3),
        suspension=Suspension(reason=SuspendReason.LIMIT, message="enough"),
        last_seq=7,
        total=Totals(),
        own=Totals(),
    ),
]
RESUMED: list[Change] = [
    *WAITING,
    ResumeJob(job_id=job_id(1), at=BEGINNING + timedelta(minutes=MORNING)),
]
RUNNING: list[Change] = [*RESUMED, start(1, minute=MORNING + 1)]
CANCELLED: list[Change] = [
    *WAITING,
    CancelJob(job_id=job_id(1), at=BEGINNING + timedelta(minutes=MORNING)),
]
SILENT: list[Change] = [
    *SUBMITTED,
    start(1, minute=1),
    ExtendLease(worker_id=WORKER.id, deadline=2.0, at=BEGINNING + timedelta(minutes=4)),
]
"""Its worker was killed five minutes after the beginning, and nobody noticed."""
RESCUED: list[Change] = [
    *SILENT,
    LoseExecution(
        job_id=job_id(1),
        epoch=1,
        at=BEGINNING + timedelta(minutes=MORNING),
        reason="its worker is gone",
        max_restarts=5,
        last_seq=7,
        total=Totals(),
        own=Totals(),
        last_seen=BEGINNING + timedelta(minutes=5),
    ),
]
FINISHED: list[Change] = [
    *RESCUED,
    start(1, minute=MORNING + 1),
    settle(1, epoch=2, minute=MORNING + 2),
]
DONE: list[Change] = [*RUNNING, settle(1, epoch=2, minute=MORNING + 5)]


@pytest.fixture(params=["memory", "sqlite"])
def is_real(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "sqlite")


def applied(folder: Path, changes: list[Change], *, is_real: bool) -> StateReader:
    """A reader of the state after these changes."""

    async def apply() -> StateReader:
        store = SqliteStore(folder, FakeClock()) if is_real else MemoryStore()
        await store.apply(changes)
        await store.close()
        return SqliteReader(folder) if isinstance(store, SqliteStore) else store.reader()

    return anyio.run(apply)


@pytest.mark.parametrize(
    ("changes", "minute", "worked", "waited"),
    [
        (SUBMITTED, 9, None, None),
        ([*SUBMITTED, start(1, minute=1)], 9, 8, 0),
        (WAITING, 9, 2, 6),
        (RESUMED, MORNING + 1, 2, MORNING - 2),
        (RUNNING, MORNING + 4, 5, MORNING - 2),
        (DONE, 2 * MORNING, 6, MORNING - 2),
        (CANCELLED, 2 * MORNING, 2, MORNING - 3),
        (RESCUED, 2 * MORNING, 4, 2 * MORNING - 5),
        (FINISHED, 2 * MORNING, 5, MORNING - 4),
    ],
)
def test_time_in_which_a_job_only_waited_is_told_apart(
    tmp_path: Path,
    is_real: bool,
    changes: list[Change],
    minute: int,
    worked: int | None,
    waited: int | None,
) -> None:
    now = BEGINNING + timedelta(minutes=minute)
    reader = applied(tmp_path, changes, is_real=is_real)
    document = job_document(
        show_job(reader, MemoryJournals(clock=FakeClock()), job_id(1), now, lambda worker: True),
        (),
        now,
    )
    reader.close()

    found = (document["worked_seconds"], document["waited_seconds"])
    assert found == tuple(None if one is None else 60.0 * one for one in (worked, waited))


def test_nobody_works_at_a_job_after_the_last_heartbeat_of_its_worker(
    tmp_path: Path, is_real: bool
) -> None:
    now = BEGINNING + timedelta(minutes=MORNING)
    reader = applied(tmp_path, SILENT, is_real=is_real)
    document = job_document(
        show_job(reader, MemoryJournals(clock=FakeClock()), job_id(1), now, lambda worker: False),
        (),
        now,
    )
    reader.close()

    assert document["lost"] is not None
    assert document["lost"]["since"] == "2026-03-01T12:04:00.000250Z"
    assert (document["worked_seconds"], document["duration_seconds"]) == (180.0, 180.0)
