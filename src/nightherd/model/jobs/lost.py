"""Lost: a job that is `running` by its row and has no live worker, and what happens to it next."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from nightherd.model.jobs.job import Job
from nightherd.model.worker import Worker

WORKER_GONE = "its worker is gone"
"""Why an execution was lost that nobody ended."""
HANDED_OVER = "its worker stopped and handed it over"
"""Why an execution ended that its worker gave back in order."""
BY_A_LIVE_WORKER = "a live worker rescues it within one lease period"
BY_THE_NEXT_WORKER = "it resumes when a worker starts: nightherd start"
CANCELLED_BY_THE_NEXT_WORKER = "it is cancelled when a worker starts: nightherd start"


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Since when nobody works at a job that is `running`, and what happens next."""

    since: datetime
    """The last sign of life of its worker."""
    next: str


class ObservedJob(Job, frozen=True, kw_only=True):
    """A job's row with what was observed when it was read. Only rows are written, never this."""

    lost: Lost | None = None
    """Set when the row says `running` and no live worker has the job."""
    worked: timedelta | None = None
    """How long workers have worked at it; None before it started."""
    waits_behind: Job | None = None
    """Set when it waits for its turn: the job of its session that goes first."""


def with_observation(
    job: Job, lost: Lost | None, worked: timedelta | None, waits_behind: Job | None = None
) -> ObservedJob:
    """The row with what was observed."""
    return ObservedJob(
        **msgspec.structs.asdict(job), lost=lost, worked=worked, waits_behind=waits_behind
    )


def lost_text(job: ObservedJob) -> str:
    """What people are told of a lost job."""
    return f"{job.id} lost its worker; {job.lost.next}" if job.lost is not None else ""


def lost_since(job: Job, started_at: datetime | None, worker: Worker | None) -> datetime:
    """The last sign of life: the worker's last heartbeat, or the start of the execution if that is later."""
    known = [worker.heartbeat_at] if worker is not None else []
    known += [started_at] if started_at is not None else []
    return max(known, default=job.started_at or job.created_at)


def next_step_of_lost(job: Job, *, has_live_workers: bool) -> str:
    """What happens to a lost job, in words for people."""
    if has_live_workers:
        return BY_A_LIVE_WORKER
    is_unwanted = job.cancel_requested_at is not None
    return CANCELLED_BY_THE_NEXT_WORKER if is_unwanted else BY_THE_NEXT_WORKER
