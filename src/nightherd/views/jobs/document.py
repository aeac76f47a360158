"""The result of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nightherd.errors import JournalError
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.failure import details_of
from nightherd.model.jobs.job import Execution, Job, JobStatus, JobTexts
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.system import HookRan
from nightherd.model.limits.login import LoginLimit, text_of
from nightherd.model.sessions.session import Session
from nightherd.model.units import MicroUsd, to_usd
from nightherd.next_step import SpellStep
from nightherd.ports import FleetReader, Journals, StateReader
from nightherd.views.costs.limits import LimitRow, LimitView, limit_row
from nightherd.views.jobs.jobs import (
    IsAtWork,
    error_of,
    get_job,
    job_row,
    lost_row,
    observe_job,
    observe_jobs,
    seconds_of,
    timestamp,
    usage_of,
)
from nightherd.views.jobs.rows import (
    ChildRow,
    ErrorDetailsRow,
    ExecutionRow,
    FailedHookRow,
    JobRow,
    ResultDocument,
    TreeRow,
    TroublesDocument,
)
from nightherd.views.jobs.troubles import (
    NO_TROUBLES,
    Troubles,
    troubles_document,
    troubles_in,
    troubles_of,
)
from nightherd.views.workspaces.workspaces import (
    WorkspaceRow,
    WorkspaceView,
    observe,
    workspace_row,
)


def result_document(
    job: ObservedJob,
    texts: JobTexts | None,
    troubles: Troubles = NO_TROUBLES,
    *,
    spell: SpellStep | None = None,
) -> ResultDocument:
    """Return what `run --json` ends with; `spell` writes the step of the hint."""
    worked = job.worked
    return {
        "job_id": job.id,
        "session_id": job.session_id,
        "session_note": texts.session_note if texts else None,
        "runtime_session_id": job.runtime_session_id,
        "agent": job.agent,
        "status": job.status,
        "exit_reason": job.exit_reason,
        "suspend_reason": job.suspend_reason,
        "resumes_at": timestamp(job.resumes_at),
        "lost": lost_row(job.lost),
        "success": job.status is JobStatus.COMPLETED,
        "summary": (texts.summary if texts else None) or job.summary,
        "duration_seconds": None if worked is None else round(worked.total_seconds(), 3),
        "usage": usage_of(job),
        "cost_usd": to_usd(job.cost_microusd),
        "error": error_of(job),
        "error_details": details_document(job, spell),
        **troubles_document(troubles),
    }


def details_document(job: Job, spell: SpellStep | None = None) -> ErrorDetailsRow | None:
    """Why the job did not succeed, in the words programs go by; None when it did."""
    details = details_of(job, spell=spell)
    if details is None:
        return None
    return {
        "message": details.message,
        "type": details.type,
        "code": details.code,
        "recoverable": details.recoverable,
        "messages_received": details.messages_received,
        "hint": details.hint,
    }


TAIL = 64
"""Events at the end of a journal among which the hooks of the job are."""


class FailedHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that failed, and the job whose hook it is."""

    agent: str
    job_id: JobId
    hook: HookRan


def failed_hooks(
    reader: FleetReader, journals: Journals, declared: Mapping[str, Agent]
) -> Sequence[FailedHook]:
    """Return the hooks that failed of the last job of each declared agent with hooks.

    Reads only the end of those journals: the cost depends on the number of agents, not on their history.
    """
    return [
        FailedHook(agent=state.name, job_id=state.last_job, hook=hook)
        for state in reader.list_agents()
        if state.last_job is not None and state.name in declared and declared[state.name].hooks
        for hook in _failed_in(journals, state.last_job)
    ]


def _failed_in(journals: Journals, job_id: JobId) -> Sequence[HookRan]:
    """The failed hooks of one job. A journal that cannot be read hides its own only: `doctor` reports it."""
    try:
        return troubles_in(journals.last(job_id, TAIL)).failed_hooks
    except JournalError:
        return ()


def failed_hook_row(failed: FailedHook) -> FailedHookRow:
    """Return a failed hook as plain data."""
    return {
        "agent": failed.agent,
        "job_id": failed.job_id,
        "name": failed.hook.name,
        "event": failed.hook.event,
        "error": failed.hook.error,
    }


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
    workspace: WorkspaceView | None = None
    """The workspace it works in; None when it works in its agent's directory."""


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
        workspace=_workspace_of(reader, job, now),
    )


def _workspace_of(reader: StateReader, job: Job, now: datetime) -> WorkspaceView | None:
    row = reader.find_workspace(job.workspace_id) if job.workspace_id is not None else None
    return None if row is None else observe(reader, row, now)


def _limit_in_the_way(reader: StateReader, job: Job, now: datetime) -> LoginLimit | None:
    """The rate limit of its agent's login for which a job waits that no worker has."""
    limits = reader.list_login_limits(now) if job.status is JobStatus.PENDING else ()
    if not limits:
        return None
    logins = {state.name: state.login for state in reader.list_agents()}
    found = (limit for limit in limits if limit.until > now and limit.id == logins.get(job.agent))
    return next(found, None)


def job_document(view: JobView, limits: Sequence[LimitView], now: datetime) -> JobDocument:
    """Everything about one job, its long texts and limits included."""
    texts = view.texts
    return {
        **job_row(view.job),
        "prompt": texts.prompt if texts else None,
        "inputs": dict(texts.inputs) if texts else {},
        "summary": (texts.summary if texts else None) or view.job.summary,
        "waits_for": None if view.rate_limit is None else text_of(view.rate_limit),
        "session_note": texts.session_note if texts else None,
        "worked_seconds": seconds_of(view.job.worked),
        "waited_seconds": seconds_of(waited(view, now)),
        "tree": tree_row(view.job, view.below),
        "children": child_rows(view.job, view.below),
        "workspace": None if view.workspace is None else workspace_row(view.workspace),
        **troubles_document(view.troubles),
        "executions": [_execution_row(execution) for execution in view.executions],
        "limits": [limit_row(limit) for limit in limits],
    }


class JobDocument(JobRow, TroublesDocument):
    """One job with everything around it."""

    prompt: str | None
    inputs: dict[str, Any]
    waits_for: str | None
    session_note: str | None
    worked_seconds: float | None
    waited_seconds: float | None
    tree: TreeRow
    children: list[ChildRow]
    workspace: WorkspaceRow | None
    executions: list[ExecutionRow]
    limits: list[LimitRow]


def waited(view: JobView, now: datetime) -> timedelta | None:
    """Return how long the job has waited since it first started: for a person, or for its next execution."""
    job = view.job
    if job.started_at is None or job.worked is None:
        return None
    return max((job.finished_at or now) - job.started_at - job.worked, timedelta())


def _execution_row(execution: Execution) -> ExecutionRow:
    return {
        "id": execution.id,
        "epoch": execution.epoch,
        "worker": execution.worker,
        "status": execution.status,
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
        "output_text": execution.output_text,
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


def tree_row(job: ObservedJob, below: Sequence[ObservedJob]) -> TreeRow:
    """What the job and all jobs below it have used together."""
    members = (job, *below)
    usage = [usage_of(member) for member in members]
    return {
        "jobs": len(members),
        "cost_usd": to_usd(MicroUsd(sum(one.cost_microusd for one in members))),
        "usage": {
            "input_tokens": sum(one["input_tokens"] for one in usage),
            "output_tokens": sum(one["output_tokens"] for one in usage),
            "cache_creation_input_tokens": sum(one["cache_creation_input_tokens"] for one in usage),
            "cache_read_input_tokens": sum(one["cache_read_input_tokens"] for one in usage),
            "num_turns": sum(one["num_turns"] for one in usage),
        },
    }


def child_rows(job: ObservedJob, below: Sequence[ObservedJob]) -> list[ChildRow]:
    """The jobs that the job has made, each with what its own tree has cost."""
    costs = tree_costs(below)
    return [
        {
            "id": one.id,
            "agent": one.agent,
            "status": one.status,
            "lost": lost_row(one.lost),
            "turns": one.turns,
            "cost_usd": to_usd(one.cost_microusd),
            "tree_cost_usd": to_usd(costs[one.id]),
        }
        for one in children_of(job.id, below)
    ]
