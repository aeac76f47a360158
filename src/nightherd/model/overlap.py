"""Overlap: the jobs for which a schedule stands still, as people read of them.

A suspended job counts where it holds a session that the next job needs. Where each job has its own session it
does not, but `max_suspended` keeps every slot from adding one more that waits.
"""

from __future__ import annotations

from nightherd.model.job import Job, JobStatus
from nightherd.model.session_order import suspended_text


def open_text(job: Job) -> str:
    """Name a job that has not ended, with what to do about it when it will not resume by itself."""
    if job.status is not JobStatus.SUSPENDED:
        return job.id
    return f"{job.id} {suspended_text(job)}"
