"""Bulk: cancel or retry many jobs. Each is its own request: what is refused for one keeps none of the others.

A request that is repeated with its key makes no second retry of a job, also after a kill in the middle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.jobs import retry_draft
from nightherd.engine.operations.new_job import check_admission
from nightherd.engine.operations.perform import check_runs
from nightherd.engine.operations.requests import Cancel, Retry, with_key
from nightherd.errors import NightherdError, RefusedError, UsageError
from nightherd.model.ids import JobId
from nightherd.model.jobs.bulk import (
    MOST_JOBS,
    BulkOutcome,
    BulkResult,
    BulkVerb,
    filter_for,
    in_order,
    is_made_by,
    key_of_retry,
)
from nightherd.model.jobs.job import Job, JobFilter, JobQuery, JobStatus
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import get_job

SERVER_ERROR = 500
"""Errors from this status on are not about a job: the request ends, and can be repeated."""

CarryOut = Callable[[Cancel | Retry], Awaitable[Job]]
"""Carries out the request of one job."""


class Bulk(msgspec.Struct, frozen=True, kw_only=True):
    """One verb for these jobs."""

    verb: BulkVerb
    job_ids: Sequence[JobId]
    refuses_held: bool = False
    key: str | None = None
    """Retries each job once, however often the request is repeated."""


def select_jobs(
    reader: StateReader, verb: BulkVerb, filter: JobFilter, key: str | None = None
) -> list[JobId]:
    """Return the jobs that the filter means for the verb, newest first; none that a request with that key has made.

    `UsageError` when they are more than one request may have.
    """
    wanted = filter_for(verb, filter)
    if wanted is None:
        return []
    jobs = reader.list_jobs(JobQuery(filter=wanted, limit=2 * MOST_JOBS + 1))
    found = [job.id for job in jobs if key is None or not is_made_by(key, job)]
    if len(found) > MOST_JOBS:
        raise UsageError(
            f"the filter fits more than {MOST_JOBS} jobs",
            hint="narrow it, for example with since:2d",
        )
    return found


async def perform_bulk(
    request: Bulk, carry_out: CarryOut, reader: StateReader
) -> list[BulkOutcome]:
    """Carry out the verb for each job, and return what became of each, in the order of the request."""
    found: dict[JobId, BulkOutcome] = {}
    jobs: list[Job] = []
    for job_id in dict.fromkeys(request.job_ids):
        try:
            jobs.append(get_job(reader, job_id))
        except NightherdError as error:
            found[job_id] = _refused(job_id, error)
    for job in sorted(jobs, key=lambda job: in_order(request.verb, job)):
        found[job.id] = await _perform_one(job, request, carry_out, reader)
    return [found[job_id] for job_id in dict.fromkeys(request.job_ids)]


async def _perform_one(
    job: Job, request: Bulk, carry_out: CarryOut, reader: StateReader
) -> BulkOutcome:
    try:
        if request.verb is BulkVerb.CANCEL:
            await carry_out(Cancel(job_id=job.id))
            return BulkOutcome(job_id=job.id, result=BulkResult.DONE)
        retry = Retry(job_id=job.id, refuses_held=request.refuses_held)
        if request.key is not None:
            retry = with_key(retry, key_of_retry(request.key))
        made = await carry_out(retry)
        return BulkOutcome(job_id=job.id, result=BulkResult.DONE, new_job_id=made.id)
    except NightherdError as error:
        if error.http_status >= SERVER_ERROR:
            raise
        is_over = request.verb is BulkVerb.CANCEL and isinstance(error, RefusedError)
        if is_over and get_job(reader, job.id).status is JobStatus.CANCELLED:
            # By an earlier request, or with the job that made it: what was asked for is so.
            return BulkOutcome(job_id=job.id, result=BulkResult.DONE)
        return _refused(job.id, error)


def plan_bulk(request: Bulk, context: FleetContext) -> list[BulkOutcome]:
    """Return what would become of each job, as far as that can be said before; nothing is changed."""
    found = []
    for job_id in dict.fromkeys(request.job_ids):
        try:
            _check(job_id, request.verb, context)
        except NightherdError as error:
            found.append(_refused(job_id, error))
        else:
            found.append(BulkOutcome(job_id=job_id, result=BulkResult.PLANNED))
    return found


def _check(job_id: JobId, verb: BulkVerb, context: FleetContext) -> None:
    """Raise what makes the verb impossible for the job now."""
    job = get_job(context.reader, job_id)
    if verb is BulkVerb.CANCEL:
        if job.is_terminal and job.status is not JobStatus.CANCELLED:
            raise RefusedError(
                f"job {job_id} is {job.status}", next_step=NextStep(Action.SHOW_JOB, job=job_id)
            )
        return
    request = Retry(job_id=job_id)
    agent = agents_of(context).find(request, context.reader)
    check_runs(request, agent, context)
    draft = retry_draft(job_id, agent, context)
    check_admission(agent, draft.schedule, draft.overrides, context)


def _refused(job_id: JobId, error: NightherdError) -> BulkOutcome:
    return BulkOutcome(job_id=job_id, result=BulkResult.REFUSED, error=error)
