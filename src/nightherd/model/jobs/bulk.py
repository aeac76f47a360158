"""Bulk: one verb for many jobs, which of a list it is for, and what became of each."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JOB_LIFECYCLE, Job, JobFilter, JobStatus

MOST_JOBS = 500
"""Jobs of one request."""
MADE = re.compile(r"retry:(?:[^:]+):bulk:(.*)", re.DOTALL)
"""The dedupe key of a job that a bulk retry made; it ends with the key of the request."""


class BulkVerb(StrEnum):
    """What can be done to many jobs at once."""

    CANCEL = "cancel"
    RETRY = "retry"


class BulkResult(StrEnum):
    """What became of one job."""

    DONE = "done"
    PLANNED = "planned"
    """Would be done: it was only asked what would happen."""
    REFUSED = "refused"


class BulkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job of a request."""

    job_id: JobId
    result: BulkResult
    new_job_id: JobId | None = None
    """The job that does the same work again."""
    error: NightherdError | None = None
    """Why it was refused."""


def filter_for(verb: BulkVerb, filter: JobFilter) -> JobFilter | None:
    """Return the filter of the jobs that the verb is for: open ones to cancel; ended ones to retry, by default failed ones.

    None when no job can fit.
    """
    ended = JOB_LIFECYCLE.terminal
    if verb is BulkVerb.CANCEL:
        statuses = {status for status in JobStatus if status not in ended}
        wanted = statuses & set(filter.statuses or statuses)
    else:
        wanted = set(ended) & set(filter.statuses or (JobStatus.FAILED,))
    if not wanted:
        return None
    return replace(filter, statuses=tuple(status for status in JobStatus if status in wanted))


def in_order(verb: BulkVerb, job: Job) -> tuple[bool, int]:
    """Sort jobs into the order in which they are taken.

    What waits is cancelled before what runs, so that nothing starts meanwhile, and children before their parents.
    Work is retried in the order in which it was asked for.
    """
    if verb is BulkVerb.RETRY:
        return False, job.number
    return job.status is JobStatus.RUNNING, -job.number


def key_of_retry(key: str) -> str:
    """Return the idempotency key of each retry of a request with that key."""
    return f"bulk:{key}"


def is_made_by(key: str, job: Job) -> bool:
    """Whether a bulk retry with that key made the job: a repeated request does not retry it."""
    match = MADE.fullmatch(job.dedupe_key or "")
    return match is not None and match[1] == key
