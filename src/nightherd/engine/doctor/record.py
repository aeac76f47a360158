"""Record: the two memories together, for those who bring them to agree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from nightherd.engine.contexts import Stores
from nightherd.errors import JournalError, RefusedError
from nightherd.model.change import Change, Refused
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.journal.recollection import Recollection, recollect
from nightherd.model.worker import Worker
from nightherd.ports import Process, StateReader, process_of
from nightherd.views.jobs.jobs import every_job

PAGE = 500

IsAlive = Callable[[Process], bool]
KillMarked = Callable[[ExecutionId], Awaitable[object]]
"""Kills everything that an execution started, and returns once nothing of it is left."""


class RepairContext(Stores, frozen=True, kw_only=True):
    """The stores, and a way to check whether a process still exists."""

    is_alive: IsAlive


def workers_at_work(record: RepairContext) -> list[Worker]:
    """The workers that really are there."""
    return [worker for worker in record.reader.live_workers() if is_there(worker, record)]


def is_there(worker: Worker, record: RepairContext) -> bool:
    """Whether the worker's very process is still there."""
    return record.is_alive(process_of(worker))


def list_jobs(reader: StateReader, status: JobStatus | None) -> Iterator[Job]:
    """Every job of that status, or every job, newest first."""
    return every_job(reader, JobQuery(status=status, limit=PAGE))


async def apply_changes(record: RepairContext, changes: Sequence[Change]) -> None:
    """Apply them all; `RefusedError` for the first that something else came before."""
    for answer in await record.state.apply(changes):
        if isinstance(answer, Refused):
            raise RefusedError(answer.message)


def recollected(record: RepairContext, job_id: JobId) -> Recollection:
    """What the job's journal says. A body that is missing from beside it takes nothing else with it."""
    try:
        try:
            return recollect(record.journals.read(job_id))
        except JournalError:
            return recollect(record.journals.read(job_id, load_blobs=False))
    except ValueError as error:
        raise RefusedError(f"the journal of {job_id} cannot be understood: {error}") from error
