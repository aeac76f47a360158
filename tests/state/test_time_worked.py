"""How long somebody worked at a job: the time of its executions, and none in which it only waited."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.model.change import Change, ResumeJob, SuspendExecution
from nightherd.model.job import SuspendReason
from nightherd.model.suspension import Suspension
from nightherd.model.usage import Totals
from nightherd.ports import StateReader
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.clock import FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit
from nightherd.views.jobs import job_document, show_job

MORNING = 8 * 60
"""Minutes after the beginning."""
WAITING: list[Change] = [
    submit(1),
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
DONE: list[Change] = [*RUNNING, settle(1, epoch=2, minute=MORNING + 5)]


@pytest.fixture(params=["memory", "sqlite"])
def is_real(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "sqlite")


@pytest.mark.parametrize(
    ("changes", "minute", "worked", "waited"),
    [
        ([submit(1)], 9, None, None),
        ([submit(1), start(1, minute=1)], 9, 8, 0),
        (WAITING, 9, 2, 6),
        (RESUMED, MORNING + 1, 2, MORNING - 2),
        (RUNNING, MORNING + 4, 5, MORNING - 2),
        (DONE, 2 * MORNING, 6, MORNING - 2),
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

    async def apply() -> StateReader:
        store = SqliteStore(tmp_path, FakeClock()) if is_real else MemoryStore()
        await store.apply(changes)
        await store.close()
        return SqliteReader(tmp_path) if isinstance(store, SqliteStore) else store.reader()

    reader = anyio.run(apply)
    document = job_document(show_job(reader, job_id(1), now), now)
    reader.close()

    found = (document["worked_seconds"], document["waited_seconds"])
    assert found == tuple(None if one is None else 60.0 * one for one in (worked, waited))
