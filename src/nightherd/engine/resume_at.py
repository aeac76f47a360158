"""Resuming at a checkpoint: the same job when it waits right there, else a new one in a branch from there."""

from __future__ import annotations

from nightherd.engine.forking import AtCheckpoint
from nightherd.engine.resuming import Rescue, Wish, resume_job, run_fork
from nightherd.engine.workshop import Workshop
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobStatus
from nightherd.views.checkpoints import list_bookmarks
from nightherd.views.jobs import get_job


async def resume_at(
    job_id: JobId,
    number: int,
    agent: Agent,
    wish: Wish,
    workshop: Workshop,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on from checkpoint `number` of `job_id`; what was said after it is not known to it.

    A job that waits where its last checkpoint is goes on itself. From every other place a new job goes on
    in a branch, and the old one stays as it is. A new one is made once for each dedupe key.
    """
    job = get_job(workshop.reader, job_id)
    found = list_bookmarks(workshop.reader, workshop.journals, job_id)
    if not any(one.number == number for one in found):
        there = ", ".join(str(one.number) for one in found) or "none"
        raise InvalidValueError(
            f"job {job_id} has no checkpoint {number}; there are {there}",
            hint=f"nightherd checkpoint list {job_id}",
        )
    if job.status is JobStatus.SUSPENDED and number == found[-1].number:
        return await resume_job(job_id, agent, wish, workshop, rescue=rescue)
    if job.status in (JobStatus.RUNNING, JobStatus.PENDING):
        raise RefusedError(
            f"job {job_id} is {job.status.value}", hint=f"nightherd jobs cancel {job_id}"
        )
    if job.session_id is None:
        raise RefusedError(f"job {job_id} has no session to go on in")
    place = AtCheckpoint(number=number, job_id=job_id)
    return await run_fork(job.session_id, place, agent, wish, workshop, dedupe_key=dedupe_key)
