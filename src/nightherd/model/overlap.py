"""Overlap: the jobs for which a schedule stands still, as people read of them.

A job that waits for a person counts as well: else every slot would add one more that waits.
"""

from __future__ import annotations

from nightherd.model.advice import GO_ON, advice_on
from nightherd.model.job import Job, JobStatus


def open_text(job: Job) -> str:
    """A job that has not ended: by its id, and with what to do about it when it will not go on by itself."""
    if job.status is not JobStatus.SUSPENDED:
        return job.id
    why = "" if job.suspend_reason is None else f" ({job.suspend_reason.value})"
    if job.not_before is not None:
        return f"{job.id} is suspended{why}, and goes on by itself"
    return f"{job.id} is suspended{why}: {advice_on(job) or GO_ON.format(job=job.id)}"
