"""Session order: the jobs of one session run in the order in which they were submitted.

A job that has not ended holds its session, also while it is suspended. Later jobs wait for it.
"""

from __future__ import annotations

from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.text import ShowTime, time_text
from nightherd.next_step import Action, Advice, NextStep, SpellStep

ANY_NUMBER = 2**62
"""Above the number of every job."""


def needs_person(job: Job) -> bool:
    """Return whether the job is suspended and does not resume by itself."""
    return job.status is JobStatus.SUSPENDED and job.not_before is None


def advice_on_suspended(job: Job) -> Advice:
    """Return what lets a suspended job continue."""
    advice = advice_on(job)
    return advice if any(advice) else Advice(step=NextStep(Action.RESUME_JOB, job=job.id))


def suspended_text(
    job: Job, show_time: ShowTime = time_text, spell: SpellStep | None = None
) -> str:
    """Say why a suspended job waits, and until when or what to do about it."""
    why = "" if job.suspend_reason is None else f" ({job.suspend_reason.value})"
    if job.not_before is not None:
        return f"is suspended{why} and resumes by itself at {show_time(job.not_before)}"
    return f"is suspended{why}: {advice_on_suspended(job).text(spell)}"


def ahead_text(ahead: Job, show_time: ShowTime = time_text, spell: SpellStep | None = None) -> str:
    """Say which job goes first, and what that one does."""
    match ahead.status:
        case JobStatus.RUNNING:
            state = "is running"
        case JobStatus.SUSPENDED:
            state = suspended_text(ahead, show_time, spell)
        case _:
            state = "waits for a worker"
    return f"{ahead.id} goes first in session {ahead.session_id} and {state}"


def held_text(holder: Job) -> str:
    """Say which suspended job holds the session, without what to do about it."""
    why = "" if holder.suspend_reason is None else f" ({holder.suspend_reason.value})"
    return f"session {holder.session_id} is held by {holder.id}, which is suspended{why}"


def steps_around(holder: Job) -> tuple[NextStep, NextStep]:
    """Return what else a person can do who wants to run something in the session that `holder` holds."""
    return (
        NextStep(Action.CANCEL_JOB, job=holder.id),
        NextStep(Action.RUN_IN_BRANCH, agent=holder.agent),
    )
