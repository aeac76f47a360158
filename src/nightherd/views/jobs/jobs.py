"""Jobs as lists show them: found by reference, listed in pages, described as plain data; and what `running` really means, decided here for every surface."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, overload

import msgspec
from msgspec.structs import replace

from nightherd.errors import AmbiguousIdError, JobNotFoundError
from nightherd.model.ids import JOB_ID, JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob, lost_since, make_lost, with_observation
from nightherd.model.text import utc_text
from nightherd.model.units import to_usd
from nightherd.next_step import Action, NextStep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from nightherd.model.jobs.lost import Lost
    from nightherd.model.worker import Worker
    from nightherd.ports import JobList
    from nightherd.views.jobs.rows import (
        JobErrorRow,
        JobRow,
        LostJobRow,
        LostRow,
        UsageRow,
        WaitsBehindRow,
    )


LAST = "@last"
LAST_FAILED = "@last-failed"
WORD = "job-"
"""What every id begins with."""
SHOWN_CANDIDATES = 5
ENDING = re.compile("[a-z0-9]{4,6}")
"""What can be the end of an id: all that differs between the jobs of a day."""
NEWEST = 1_000
"""So many are looked at for one that ends so: no index finds it."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list, and where the next begins; None when this is the last."""

    jobs: Sequence[Job]
    next_before: int | None


def find_job_id(reader: JobList, reference: str) -> JobId:
    """The one job that `reference` means: an id, a unique prefix of one, `@last` or `@last-failed`.

    A prefix may leave out `job-`. The last characters do as well, of one of the newest. Nothing at all means no
    job, also when there is only one.
    """
    if reference in (LAST, LAST_FAILED):
        status = JobStatus.FAILED if reference == LAST_FAILED else None
        newest = reader.list_jobs(JobQuery(status=status, limit=1))
        if not newest:
            what = "failed jobs" if status else "jobs"
            raise JobNotFoundError(
                f"there are no {what} yet", next_step=NextStep(Action.RUN_WITH_PROMPT)
            )
        return newest[0].id
    if JOB_ID.fullmatch(reference):
        return get_job(reader, JobId(reference)).id
    found = _candidates(reader, reference) if reference else []
    if not found and ENDING.fullmatch(reference):
        found = [one for one in reader.job_ids(WORD, NEWEST) if one.endswith(reference)]
    if len(found) == 1:
        return found[0]
    if reference.startswith("@"):
        raise JobNotFoundError(
            f"{reference!r} is neither {LAST} nor {LAST_FAILED}",
            next_step=NextStep(Action.LIST_JOBS),
        )
    if not found:
        what = f"no job begins with {reference!r}" if reference else "the job id is empty"
        raise JobNotFoundError(what, next_step=NextStep(Action.LIST_JOBS))
    shown = ", ".join(found[:SHOWN_CANDIDATES]) + (", ..." if len(found) > SHOWN_CANDIDATES else "")
    raise AmbiguousIdError(f"{reference!r} could be {shown}", hint="give more characters of the id")


def _candidates(reader: JobList, reference: str) -> Sequence[JobId]:
    is_whole = reference.startswith(WORD) or WORD.startswith(reference)
    prefix = reference if is_whole else WORD + reference
    limit = SHOWN_CANDIDATES + 1
    return reader.job_ids(prefix, limit)


def get_job(reader: JobList, job_id: JobId) -> Job:
    """The job's row as it is now."""
    job = reader.find_job(job_id)
    if job is None:
        raise JobNotFoundError(f"there is no job {job_id}")
    return job


def every_job(reader: JobList, query: JobQuery) -> Iterator[Job]:
    """Every job that the query is about, newest first; its limit is how many are read at once."""
    while True:
        page = reader.list_jobs(query)
        yield from page
        if len(page) < query.limit:
            return
        query = replace(query, before=page[-1].number)


def list_page(reader: JobList, query: JobQuery) -> Page:
    """One page of jobs, newest first."""
    found = reader.list_jobs(replace(query, limit=query.limit + 1))
    jobs = found[: query.limit]
    more = len(found) > query.limit
    return Page(jobs=jobs, next_before=jobs[-1].number if more and jobs else None)


@overload
def timestamp(at: datetime) -> str: ...


@overload
def timestamp(at: None) -> None: ...


@overload
def timestamp(at: datetime | None) -> str | None: ...


def timestamp(at: datetime | None) -> str | None:
    """An instant as every document writes it: RFC 3339, UTC, microseconds."""
    return None if at is None else utc_text(at)


def job_row(job: ObservedJob) -> JobRow:
    """A job as lists and `jobs show` give it: everything but its long texts."""
    return {
        "id": job.id,
        "agent": job.agent,
        "schedule": job.schedule,
        "trigger_type": job.trigger_type,
        "trigger_id": job.trigger_id,
        "status": job.status,
        "exit_reason": job.exit_reason,
        "suspend_reason": job.suspend_reason,
        "resumes_at": timestamp(job.resumes_at),
        "lost": lost_row(job.lost),
        "waits_behind": waits_behind_row(job.waits_behind),
        "session_id": job.session_id,
        "workspace_id": job.workspace_id,
        "runtime_session_id": job.runtime_session_id,
        "forked_from": job.forked_from,
        "resumed_from": job.resumed_from,
        "parent_job_id": job.parent_job_id,
        "workflow_run_id": job.workflow_run_id,
        "phase": phase_path(job),
        "priority": job.priority,
        "restart_count": job.restart_count,
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at),
        "finished_at": timestamp(job.finished_at),
        "duration_seconds": seconds_of(job.worked),
        "turns": job.turns,
        "messages": job.messages,
        "usage": usage_of(job),
        "cost_usd": to_usd(job.cost_microusd),
        "summary": job.summary,
        "error": error_of(job),
        "output_file": job.output_file,
    }


def phase_path(job: Job) -> str | None:
    """Return the phase of its run that a job is, with its iteration, item and attempt; None for other jobs."""
    if job.node_id is None or job.workflow_run_id is None:
        return None
    return job.node_id.removeprefix(f"{job.workflow_run_id}/")


def waits_behind_row(ahead: Job | None) -> WaitsBehindRow | None:
    """The job of its session for which a job waits, as every document gives it."""
    if ahead is None:
        return None
    return {
        "job_id": ahead.id,
        "status": ahead.status,
        "suspend_reason": ahead.suspend_reason,
        "resumes_at": timestamp(ahead.resumes_at),
    }


def lost_job_row(job: ObservedJob | None) -> LostJobRow | None:
    """The lost job of a schedule or a session; None when it has none."""
    lost = lost_row(job.lost) if job is not None else None
    return None if job is None or lost is None else {"job": job.id, **lost}


def lost_row(lost: Lost | None) -> LostRow | None:
    """Since when a running job has no worker, and what happens next; None when it has one or needs none."""
    return None if lost is None else {"since": timestamp(lost.since), "next": lost.next}


@overload
def seconds_of(span: timedelta) -> float: ...


@overload
def seconds_of(span: None) -> None: ...


@overload
def seconds_of(span: timedelta | None) -> float | None: ...


def seconds_of(span: timedelta | None) -> float | None:
    """A span as every document writes it."""
    return None if span is None else round(span.total_seconds(), 3)


def usage_of(job: Job) -> UsageRow:
    """The job's tokens and turns."""
    return {
        "input_tokens": job.input_tokens,
        "output_tokens": job.output_tokens,
        "cache_creation_input_tokens": job.cache_creation_input_tokens,
        "cache_read_input_tokens": job.cache_read_input_tokens,
        "num_turns": job.turns,
    }


def error_of(job: Job) -> JobErrorRow | None:
    """Why the job failed, or None."""
    return None if job.error is None else {"code": job.error_code, "message": job.error}


IsAtWork = Callable[["Worker"], bool]
Spans = Sequence[tuple["datetime", "datetime | None"]]


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
