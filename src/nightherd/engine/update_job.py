"""Changing the status of a job from outside: only the steps that need no worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nightherd.engine.cancelling import cancel_job
from nightherd.engine.execution import job_of
from nightherd.engine.record import Record
from nightherd.engine.spawning import cancel_below
from nightherd.engine.state_files import write_stopped
from nightherd.engine.workshop import ThreadFiles
from nightherd.errors import RefusedError
from nightherd.model.change import Refused, ResumeJob, Why
from nightherd.model.ids import JobId
from nightherd.model.job import JobStatus
from nightherd.model.suspension import FailWaiting

FAILED_BY_PROGRAM = "failed_by_program"
"""The error code of a job that a program declared failed."""


async def update_job(
    job_id: JobId,
    status: JobStatus,
    error: str | None,
    record: Record,
    threads: ThreadFiles | None,
    *,
    rescue: Callable[[], Awaitable[object]],
) -> None:
    """Set the status to `cancelled`, `failed` or, for a suspended job, `pending`, as the lifecycle allows.

    `RefusedError` for a step that the lifecycle does not have, or that only the worker of the job can make.
    """
    if status is JobStatus.CANCELLED:
        await cancel_job(job_id, record, threads, rescue=rescue)
        return
    at = record.clock.now()
    change: ResumeJob | FailWaiting
    if status is JobStatus.PENDING:
        change = ResumeJob(job_id=job_id, at=at)
    elif status is JobStatus.FAILED:
        message = str(record.secrets.mask(error or "a program set the job to failed"))
        change = FailWaiting(job_id=job_id, at=at, message=message, code=FAILED_BY_PROGRAM)
    else:
        raise RefusedError(
            f"only a worker can set job {job_id} to {status}",
            hint="a program can set cancelled, failed or pending",
        )
    (answer,) = await record.state.apply([change])
    if isinstance(answer, Refused) and answer.why is Why.STATUS:
        raise RefusedError(
            f"{answer.message}; it cannot become {status}", hint=f"nightherd jobs show {job_id}"
        )
    job = job_of(answer)
    if job.is_terminal:
        await cancel_below(job_id, record)
        await write_stopped(job_id, record, threads)
