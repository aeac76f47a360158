"""Jobs as every surface shows them: found by reference, listed in pages, described as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from nightherd.errors import AmbiguousIdError, JobNotFoundError
from nightherd.model.ids import JOB_ID, JobId
from nightherd.model.job import Job, JobQuery, JobStatus, JobTexts
from nightherd.model.login_limit import text_of
from nightherd.model.money import to_usd
from nightherd.views.observed import observe_job

if TYPE_CHECKING:  # only names: a list of jobs must not load what else there is
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from nightherd.model.execution import Execution
    from nightherd.model.lost import Lost, ObservedJob
    from nightherd.model.session import Session
    from nightherd.ports import JobList, StateReader
    from nightherd.views.observed import IsAtWork

LAST = "@last"
LAST_FAILED = "@last-failed"
WORD = "job-"
"""What every id begins with."""
SHOWN_CANDIDATES = 5
ENDING = re.compile("[a-z0-9]{4,6}")
"""What can be the end of an id: all that differs between the jobs of a day."""
NEWEST = 1_000
"""So many are looked at for one that ends so: no index finds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list, and where the next begins; None when this is the last."""

    jobs: Sequence[Job]
    next_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job with everything around it."""

    job: ObservedJob
    texts: JobTexts | None
    executions: Sequence[Execution]
    session: Session | None
    waits_for: str | None = None
    """The rate limit because of which no worker takes it."""


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
            raise JobNotFoundError(f"there are no {what} yet", hint="nightherd run AGENT -p TEXT")
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
            f"{reference!r} is neither {LAST} nor {LAST_FAILED}", hint="nightherd jobs"
        )
    if not found:
        what = f"no job begins with {reference!r}" if reference else "nothing at all names no job"
        raise JobNotFoundError(what, hint="nightherd jobs")
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


def show_job(reader: StateReader, job_id: JobId, now: datetime, is_at_work: IsAtWork) -> JobView:
    """The job and everything around it."""
    job = observe_job(reader, get_job(reader, job_id), is_at_work, now)
    return JobView(
        job=job,
        waits_for=_limit_in_the_way(reader, job, now),
        texts=reader.find_texts(job_id),
        executions=reader.list_executions(job_id),
        session=reader.find_session(job.session_id) if job.session_id is not None else None,
    )


def _limit_in_the_way(reader: StateReader, job: Job, now: datetime) -> str | None:
    """The rate limit of its agent's login for which a job waits that no worker has."""
    limits = reader.list_login_limits(now) if job.status is JobStatus.PENDING else ()
    if not limits:
        return None
    logins = {state.name: state.login for state in reader.list_agents()}
    found = (one for one in limits if one.until > now and one.id == logins.get(job.agent))
    return next((text_of(one) for one in found), None)


def timestamp(at: datetime | None) -> str | None:
    """An instant as every document writes it: RFC 3339, UTC, microseconds."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def job_row(job: ObservedJob) -> dict[str, Any]:
    """A job as lists and `jobs show` give it: everything but its long texts."""
    return {
        "id": job.id,
        "agent": job.agent,
        "schedule": job.schedule,
        "trigger_type": job.trigger_type.value,
        "trigger_id": job.trigger_id,
        "status": job.status.value,
        "exit_reason": job.exit_reason.value if job.exit_reason else None,
        "suspend_reason": job.suspend_reason.value if job.suspend_reason else None,
        "resumes_at": timestamp(job.resumes_at),
        "lost": lost_row(job.lost),
        "session_id": job.session_id,
        "runtime_session_id": job.runtime_session_id,
        "forked_from": job.forked_from,
        "resumed_from": job.resumed_from,
        "parent_job_id": job.parent_job_id,
        "priority": job.priority,
        "restart_count": job.restart_count,
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at),
        "finished_at": timestamp(job.finished_at),
        "duration_seconds": _seconds(job.worked),
        "turns": job.turns,
        "messages": job.messages,
        "usage": usage_of(job),
        "cost_usd": to_usd(job.cost_microusd),
        "summary": job.summary,
        "error": error_of(job),
        "output_file": job.output_file,
    }


def lost_row(lost: Lost | None) -> dict[str, str | None] | None:
    """Since when a running job has no worker, and what happens next; None when it has one or needs none."""
    return None if lost is None else {"since": timestamp(lost.since), "next": lost.next}


def job_document(view: JobView, now: datetime) -> dict[str, Any]:
    """Everything about one job, its long texts included."""
    texts = view.texts
    document = job_row(view.job)
    document["prompt"] = texts.prompt if texts else None
    document["inputs"] = dict(texts.inputs) if texts else {}
    document["summary"] = (texts.summary if texts else None) or view.job.summary
    document["waits_for"] = view.waits_for
    document["session_note"] = texts.session_note if texts else None
    document["worked_seconds"] = _seconds(view.job.worked)
    document["waited_seconds"] = _seconds(waited(view, now))
    document["executions"] = [_execution_row(execution) for execution in view.executions]
    return document


def waited(view: JobView, now: datetime) -> timedelta | None:
    """How long it has only waited since it first started: for somebody, or for its next execution."""
    job = view.job
    if job.started_at is None or job.worked is None:
        return None
    return max((job.finished_at or now) - job.started_at - job.worked, timedelta())


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)


def usage_of(job: Job) -> dict[str, int]:
    """The job's tokens and turns."""
    return {
        "input_tokens": job.input_tokens,
        "output_tokens": job.output_tokens,
        "cache_creation_input_tokens": job.cache_creation_input_tokens,
        "cache_read_input_tokens": job.cache_read_input_tokens,
        "num_turns": job.turns,
    }


def error_of(job: Job) -> dict[str, str | None] | None:
    """Why the job failed, or None."""
    return None if job.error is None else {"code": job.error_code, "message": job.error}


def _execution_row(execution: Execution) -> dict[str, Any]:
    return {
        "id": execution.id,
        "epoch": execution.epoch,
        "worker": execution.worker,
        "status": execution.status.value,
        "trigger_type": execution.trigger_type,
        "trigger_id": execution.trigger_id,
        "skill": execution.skill,
        "repo": execution.repo,
        "issue_number": execution.issue_number,
        "started_at": timestamp(execution.started_at),
        "finished_at": timestamp(execution.finished_at),
        "duration_ms": execution.duration_ms,
        "api_duration_ms": execution.api_duration_ms,
        "success": execution.success,
        "session_id": execution.session_id,
        "runtime_session_id": execution.runtime_session_id,
        "turns": execution.turns,
        "input_tokens": execution.input_tokens,
        "cache_creation_input_tokens": execution.cache_creation_input_tokens,
        "cache_read_input_tokens": execution.cache_read_input_tokens,
        "output_tokens": execution.output_tokens,
        "cost_usd": to_usd(execution.cost_microusd),
        "stop_reason": execution.stop_reason,
        "workflow_run_id": execution.workflow_run_id,
        "error": execution.error,
    }
