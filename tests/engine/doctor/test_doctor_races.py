"""What moved between two looks is not wrong: a list that is older than what is looked at next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import anyio
from msgspec.structs import replace

from engine.doctor.ward import Ward
from nightherd.engine.doctor.orphans import orphans
from nightherd.engine.doctor.reconcile import disagreements
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.doctor.stuck import end_stuck_jobs, stuck_jobs
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import ExecutionId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.ports import StateReader
from nightherd.wiring.stores import open_repair

Look = Callable[[RepairContext], Iterator[Finding]]


class OldList:
    """A reader whose list was made before everything else it answers."""

    def __init__(self, reader: StateReader, jobs: Sequence[Job]) -> None:
        self._reader = reader
        self._jobs = jobs

    def list_jobs(self, query: JobQuery) -> Sequence[Job]:
        return [job for job in self._jobs if query.status in (None, job.status)]

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)


def found(ward: Ward, look: Look, listed: Callable[[Job], Sequence[Job]]) -> list[Finding]:
    """What a check finds whose list of jobs is what `listed` makes of the newest job."""

    async def work() -> list[Finding]:
        async with open_repair(ward.root) as record:
            (job,) = record.reader.list_jobs(JobQuery(limit=1))
            reader = cast("StateReader", OldList(record.reader, listed(job)))
            return list(look(replace(record, reader=reader)))

    return anyio.run(work)


def test_job_that_was_settled_since_it_was_listed_is_not_stuck(ward: Ward) -> None:
    ward.run("hello")

    assert found(ward, stuck_jobs, lambda job: [replace(job, status=JobStatus.RUNNING)]) == []


def test_job_that_began_since_it_was_listed_does_not_disagree_with_its_journal(ward: Ward) -> None:
    ward.run("hello")

    def before(job: Job) -> list[Job]:
        return [replace(job, status=JobStatus.PENDING, epoch=0, last_seq=0)]

    assert found(ward, disagreements, before) == []


def test_job_that_was_submitted_since_the_list_is_no_orphan(ward: Ward) -> None:
    ward.run("hello")

    assert found(ward, orphans, lambda job: []) == []


def test_job_that_was_settled_since_it_was_found_stuck_stays_as_it_is(ward: Ward) -> None:
    job_id = ward.run("hello")
    before = ward.rows()
    killed: list[ExecutionId] = []

    async def kill_marked(execution: ExecutionId) -> None:
        killed.append(execution)

    async def work() -> None:
        async with open_repair(ward.root) as record:
            stuck = Finding(check="stuck", level=Level.PROBLEM, message="", job_id=job_id)
            await end_stuck_jobs(record, kill_marked, stuck)

    anyio.run(work)

    assert (ward.rows(), killed) == (before, [])
