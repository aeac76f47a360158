"""One job with everything around it: its texts, executions, tree, denied calls and failed hooks, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Execution, Job, JobStatus, JobTexts
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.limits.login import LoginLimit, text_of
from nightherd.model.sessions.session import Session
from nightherd.model.units import MicroUsd, to_usd
from nightherd.model.worker import Worker
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs import get_job, job_row, lost_row, seconds_of, timestamp, usage_of
from nightherd.views.observed import observe_job, observe_jobs
from nightherd.views.results import NO_TROUBLES, Troubles, troubles_document, troubles_of

IsAtWork = Callable[[Worker], bool]


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One job with everything around it."""

    job: ObservedJob
    texts: JobTexts | None
    executions: Sequence[Execution]
    session: Session | None
    rate_limit: LoginLimit | None = None
    """The rate limit that the job waits for while no worker has it."""
    below: Sequence[ObservedJob] = ()
    """All jobs below it, at any level, first to last."""
    troubles: Troubles = NO_TROUBLES
    """The calls of it that were denied, and its hooks that failed."""


def show_job(
    reader: StateReader,
    journals: Journals,
    job_id: JobId,
    now: datetime,
    is_at_work: IsAtWork,
) -> JobView:
    """The job and everything around it. Reads its journal for denied calls and failed hooks."""
    job = observe_job(reader, get_job(reader, job_id), is_at_work, now)
    return JobView(
        job=job,
        rate_limit=_limit_in_the_way(reader, job, now),
        texts=reader.find_texts(job_id),
        executions=reader.list_executions(job_id),
        session=reader.find_session(job.session_id) if job.session_id is not None else None,
        below=observe_jobs(reader, reader.jobs_below(job_id), is_at_work, now),
        troubles=troubles_of(job, journals),
    )


def _limit_in_the_way(reader: StateReader, job: Job, now: datetime) -> LoginLimit | None:
    """The rate limit of its agent's login for which a job waits that no worker has."""
    limits = reader.list_login_limits(now) if job.status is JobStatus.PENDING else ()
    if not limits:
        return None
    logins = {state.name: state.login for state in reader.list_agents()}
    found = (one for one in limits if one.until > now and one.id == logins.get(job.agent))
    return next(found, None)


def job_document(view: JobView, now: datetime) -> dict[str, Any]:
    """Everything about one job, its long texts included."""
    texts = view.texts
    document = job_row(view.job)
    document["prompt"] = texts.prompt if texts else None
    document["inputs"] = dict(texts.inputs) if texts else {}
    document["summary"] = (texts.summary if texts else None) or view.job.summary
    document["waits_for"] = None if view.rate_limit is None else text_of(view.rate_limit)
    document["session_note"] = texts.session_note if texts else None
    document["worked_seconds"] = seconds_of(view.job.worked)
    document["waited_seconds"] = seconds_of(waited(view, now))
    document["tree"] = tree_row(view.job, view.below)
    document["children"] = child_rows(view.job, view.below)
    document |= troubles_document(view.troubles)
    document["executions"] = [_execution_row(execution) for execution in view.executions]
    return document


def waited(view: JobView, now: datetime) -> timedelta | None:
    """How long it has only waited since it first started: for somebody, or for its next execution."""
    job = view.job
    if job.started_at is None or job.worked is None:
        return None
    return max((job.finished_at or now) - job.started_at - job.worked, timedelta())


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


def children_of(job_id: JobId, below: Sequence[ObservedJob]) -> list[ObservedJob]:
    """The jobs that the job itself has made, first to last."""
    return [one for one in below if one.parent_job_id == job_id]


def tree_costs(below: Sequence[ObservedJob]) -> Mapping[JobId, MicroUsd]:
    """What each of the jobs below a job has cost together with all jobs below itself."""
    costs: dict[JobId, MicroUsd] = {one.id: one.cost_microusd for one in below}
    # A job is submitted after the one that makes it: from the last to the first, each is complete when it is added.
    for one in reversed(below):
        parent = one.parent_job_id
        if parent is not None and parent in costs:
            costs[parent] = MicroUsd(costs[parent] + costs[one.id])
    return costs


def tree_row(job: ObservedJob, below: Sequence[ObservedJob]) -> dict[str, Any]:
    """What the job and all jobs below it have used together."""
    members = (job, *below)
    usage = [usage_of(one) for one in members]
    return {
        "jobs": len(members),
        "cost_usd": to_usd(MicroUsd(sum(one.cost_microusd for one in members))),
        "usage": {key: sum(one[key] for one in usage) for key in usage[0]},
    }


def child_rows(job: ObservedJob, below: Sequence[ObservedJob]) -> list[dict[str, Any]]:
    """The jobs that the job has made, each with what its own tree has cost."""
    costs = tree_costs(below)
    return [
        {
            "id": one.id,
            "agent": one.agent,
            "status": one.status.value,
            "lost": lost_row(one.lost),
            "turns": one.turns,
            "cost_usd": to_usd(one.cost_microusd),
            "tree_cost_usd": to_usd(costs[one.id]),
        }
        for one in children_of(job.id, below)
    ]
