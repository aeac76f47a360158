"""Several processes on one state directory: every change happens once, in one order."""

from __future__ import annotations

from pathlib import Path

from nightherd.db.ledger import read_ledger
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.state.directory import StateDirectory
from nightherd.state.reader import SqliteReader
from nightherd.testing.fork_server import ForkServer
from state.state_workload import WORKLOAD
from state.stores import contents, replayed

PROCESSES = 4
JOBS = 60
KEYS = 40


def test_processes_share_a_directory_without_losing_or_doubling(
    directory: StateDirectory, fork_server: ForkServer, tmp_path: Path
) -> None:
    order = {"root": str(directory.root), "count": JOBS, "keys": KEYS}

    orders = [{**order, "first": 1 + place * JOBS} for place in range(PROCESSES)]
    ended = fork_server.run_all(WORKLOAD, orders)

    said = [line.split() for one in ended for line in one.said]
    assert [one.status for one in ended] == [0] * PROCESSES, said
    reader = SqliteReader(directory.root)
    jobs = reader.list_jobs(JobQuery(limit=10_000))
    reader.close()
    submitted = [job for step, job, outcome in said if (step, outcome) == ("submit", "applied")]
    refused = [outcome for step, _, outcome in said if step == "submit" and outcome != "applied"]
    assert sorted(submitted) == sorted(job.id for job in jobs)
    assert set(refused) == {"duplicate"}
    assert len(submitted) + len(refused) == PROCESSES * JOBS
    assert len({job.dedupe_key for job in jobs}) == len(jobs) == KEYS
    assert sorted(job.number for job in jobs) == list(range(1, KEYS + 1))
    assert [job.created_at for job in jobs] == sorted(
        (job.created_at for job in jobs), reverse=True
    )
    assert {job.status for job in jobs} == {JobStatus.COMPLETED}
    changes = [line.change for line in read_ledger(directory.ledger)]
    assert changes == list(range(1, 3 * KEYS + 1))
    assert replayed(directory, tmp_path / "replayed.db") == contents(directory.database)


def test_processes_that_open_a_new_directory_at_once_migrate_it_once(
    directory: StateDirectory, fork_server: ForkServer
) -> None:
    order = {"root": str(directory.root), "count": 1}

    ended = fork_server.run_all(WORKLOAD, [{**order, "first": n} for n in range(1, 7)])

    assert [one.status for one in ended] == [0] * 6, ended
    assert [path.name for path in directory.root.glob("*.backup-*")] == []
    assert len(contents(directory.database)["jobs"]) == 6
