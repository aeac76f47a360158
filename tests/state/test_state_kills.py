"""Killed at any point, nothing acknowledged is missing, nothing is half there, and the next writer goes on."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.db.ledger import read_ledger
from nightherd.model.change import Applied
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.state.directory import StateDirectory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import submit
from state.state_workload import WORKLOAD
from state.stores import contents, open_store, replayed

POINTS = [
    "db.begin",
    "db.before_commit",
    "db.after_commit",
    "ledger.half_written",
    "ledger.appended",
    "outbox.cleared",
]
JOBS_PER_TRIAL = 6
TRIALS = 22
REACHED = {
    "submit": {JobStatus.PENDING, JobStatus.RUNNING, JobStatus.COMPLETED},
    "start": {JobStatus.RUNNING, JobStatus.COMPLETED},
    "settle": {JobStatus.COMPLETED},
}


def check_nothing_is_missing_or_half_there(directory: StateDirectory, said: list[str]) -> None:
    reader = SqliteReader(directory.root)
    for line in said:
        step, job_id, outcome = line.split()
        job = reader.find_job(JobId(job_id))
        assert outcome == "applied"
        assert job is not None, line
        assert job.status in REACHED[step], line
    jobs = list(reader.list_jobs(JobQuery(limit=1000)))
    assert [job.number for job in jobs] == list(range(len(jobs), 0, -1))
    for job in jobs:
        assert reader.find_texts(job.id) is not None
        assert job.session_id is not None
        assert reader.find_session(job.session_id) is not None
        assert len(reader.list_executions(job.id)) == job.epoch
    reader.close()


async def write_one(directory: StateDirectory, number: int) -> None:
    async with open_store(directory) as store:
        (answer,) = await store.apply([submit(number)])
    assert isinstance(answer, Applied)


def check_ledger_is_the_database(directory: StateDirectory, target: Path) -> None:
    changes = [line.change for line in read_ledger(directory.ledger)]
    assert changes == list(range(1, len(changes) + 1))
    assert replayed(directory, target) == contents(directory.database)


@pytest.mark.parametrize("point", POINTS)
def test_killed_writer_loses_nothing_it_acknowledged(
    point: str, directory: StateDirectory, fork_server: ForkServer, tmp_path: Path
) -> None:
    for trial in range(1, TRIALS + 1):
        first = trial * 100
        # How often the outbox is cleared depends on how changes fall into groups; once is certain.
        nth = 1 if point == "outbox.cleared" else trial % 4 + 1
        order: dict[str, Any] = {"root": str(directory.root), "point": point, "nth": nth}

        ended = fork_server.run(WORKLOAD, {**order, "first": first, "count": JOBS_PER_TRIAL})

        assert ended.status == -signal.SIGKILL, ended
        check_nothing_is_missing_or_half_there(directory, ended.said)
        anyio.run(write_one, directory, first + 50)
        check_ledger_is_the_database(directory, tmp_path / f"replayed-{trial}.db")


@pytest.mark.parametrize("point", POINTS)
def test_stopped_writer_is_taken_over_and_history_stays_one(
    point: str, directory: StateDirectory, fork_server: ForkServer, tmp_path: Path
) -> None:
    order = {"root": str(directory.root), "point": point, "nth": 2, "signal": signal.SIGSTOP}
    (trial,) = fork_server.begin(WORKLOAD, {**order, "first": 1, "count": JOBS_PER_TRIAL})
    trial.wait_until_stopped()

    async def take_over() -> list[str]:
        store = SqliteStore(directory.root, FakeClock(), patience_s=0.2)
        (answer,) = await store.apply([submit(50)])
        assert isinstance(answer, Applied)
        await store.close()
        return list(store.take_notices())

    (notice,) = anyio.run(take_over)
    ended = trial.wait()

    assert f"process {trial.pid} was stopped" in notice
    assert ended.status == -signal.SIGKILL
    check_nothing_is_missing_or_half_there(directory, ended.said)
    check_ledger_is_the_database(directory, tmp_path / "replayed.db")
