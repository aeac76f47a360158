"""Lost: a job that is `running` by its row and has no live worker, and what happens to it next."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from nightherd.model.jobs.job import Job
from nightherd.model.worker import Worker
from nightherd.next_step import Action, Advice, NextStep, SpellStep

WORKER_GONE = "its worker is gone"
"""Why an execution was lost: it never ended in order."""
HANDED_OVER = "its worker stopped and handed it over"
FROZEN = "its worker was frozen, and what it ran was ended"
"""Why an execution ended that its worker gave back in order."""
BY_A_LIVE_WORKER = "a live worker rescues it within one lease period"
BY_THE_NEXT_WORKER = "it resumes when a worker starts"
CANCELLED_BY_THE_NEXT_WORKER = "it is cancelled when a worker starts"


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Since when a `running` job has had no live worker, and what happens next."""

    since: datetime
    """The last sign of life of its worker."""
    next: str
    """What happens next, in words."""
    next_step: NextStep | None = None
    """What has to be done for that; None when it happens by itself."""


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


def next_text(lost: Lost, spell: SpellStep | None = None) -> str:
    """Say what happens next to a lost job, with the step for it as `spell` writes it."""
    return Advice(lost.next, lost.next_step).text(spell) or lost.next


def lost_text(job: ObservedJob, spell: SpellStep | None = None) -> str:
    """Say that a job is lost and what happens next; nothing for a job that is not."""
    return f"{job.id} lost its worker; {next_text(job.lost, spell)}" if job.lost is not None else ""


def lost_since(job: Job, started_at: datetime | None, worker: Worker | None) -> datetime:
    """The last sign of life: the worker's last heartbeat, or the start of the execution if that is later."""
    known = [worker.heartbeat_at] if worker is not None else []
    known += [started_at] if started_at is not None else []
    return max(known, default=job.started_at or job.created_at)


def make_lost(job: Job, since: datetime, *, has_live_workers: bool) -> Lost:
    """Return what is known about a job that has had no live worker since then."""
    if has_live_workers:
        return Lost(since=since, next=BY_A_LIVE_WORKER)
    is_unwanted = job.cancel_requested_at is not None
    words = CANCELLED_BY_THE_NEXT_WORKER if is_unwanted else BY_THE_NEXT_WORKER
    return Lost(since=since, next=words, next_step=NextStep(Action.START_DAEMON))
