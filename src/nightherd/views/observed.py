"""Observed jobs: what `running` really means, decided here for every surface.

A row says `running` until it is changed, and a killed worker changes nothing. So every surface asks here
whether a live worker has the job, and for how long workers have worked at it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.lost import (
    ObservedJob,
    lost_since,
    make_lost,
    with_observation,
)

if TYPE_CHECKING:  # only names: a list of jobs must not load what else there is
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from nightherd.model.worker import Worker
    from nightherd.ports import JobList

    IsAtWork = Callable[[Worker], bool]
    Spans = Sequence[tuple[datetime, datetime | None]]


def observe_jobs(
    reader: JobList, jobs: Sequence[Job], is_at_work: IsAtWork, now: datetime
) -> list[ObservedJob]:
    """The jobs with what is true of them now. Reads rows only, and more than `jobs` only where it has to."""
    if not any(job.status is JobStatus.RUNNING for job in jobs):
        return [own_job(reader, job, now) for job in jobs]
    # Workers after jobs: a worker is on record before its job runs, and settles the job before it leaves.
    alive = {worker.id for worker in reader.live_workers() if is_at_work(worker)}
    return [_observe(reader, job, alive, now) for job in jobs]


def observe_job(reader: JobList, job: Job, is_at_work: IsAtWork, now: datetime) -> ObservedJob:
    """One job with what is true of it now."""
    (observed,) = observe_jobs(reader, [job], is_at_work, now)
    return observed


def first_lost(jobs: Sequence[ObservedJob]) -> ObservedJob | None:
    """Return the oldest lost job of `jobs`, unless a live worker has one of the others."""
    running = [job for job in jobs if job.status is JobStatus.RUNNING]
    if not running or any(job.lost is None for job in running):
        return None
    return min(running, key=lambda job: job.number)


def own_job(reader: JobList, job: Job, now: datetime) -> ObservedJob:
    """A job that this very process works at or has just ended: it is not lost."""
    ahead = reader.jobs_ahead(job, 1) if job.status is JobStatus.PENDING else ()
    return with_observation(job, None, worked(job, reader, now), ahead[0] if ahead else None)


def _observe(reader: JobList, job: Job, alive: Collection[str], now: datetime) -> ObservedJob:
    if job.status is not JobStatus.RUNNING or job.worker in alive:
        return own_job(reader, job, now)
    # Its worker may have settled the job and left after the row was read.
    current = reader.find_job(job.id) or job
    if current.status is not JobStatus.RUNNING or current.worker != job.worker:
        return own_job(reader, current, now)
    spans = reader.spans_of_job(job.id)
    worker = reader.find_worker(current.worker) if current.worker is not None else None
    since = lost_since(current, spans[-1][0] if spans else None, worker)
    lost = make_lost(current, since, has_live_workers=bool(alive))
    return with_observation(current, lost, worked_in(spans, current, lost.since))


def worked(job: Job, reader: JobList, now: datetime) -> timedelta | None:
    """How long workers have worked at a job that is not lost, up to `now` while it runs; None before it started.

    Time in which it waited is left out: for a worker, for a person, or for its worker to be missed.
    """
    if job.started_at is None:
        return None
    if job.epoch <= 1 and job.status in (JobStatus.RUNNING, JobStatus.COMPLETED):
        # One execution, which ended with the job: no need to look it up.
        return max((job.finished_at or now) - job.started_at, timedelta())
    end = now if job.status is JobStatus.RUNNING else job.finished_at
    return worked_in(reader.spans_of_job(job.id), job, end)


def worked_in(spans: Spans, job: Job, end: datetime | None) -> timedelta | None:
    """The sum of the executions' spans; the one that has not ended counts up to `end`."""
    if job.started_at is None:
        return None
    if not spans:  # imported, or its executions are lost: what the row says is all there is
        return max(end - job.started_at, timedelta()) if end is not None else timedelta()
    known = [(begun, ended or end) for begun, ended in spans]
    return sum((max(ended - begun, timedelta()) for begun, ended in known if ended), timedelta())
