"""Raised limits of a run: which of its jobs continue, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.raise_limits import given_before
from nightherd.engine.workflows.phase_agent import find_phase
from nightherd.errors import RefusedError
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.limits.limits import (
    COUNTED,
    LimitName,
    Limits,
    Used,
    limits_document,
    shown,
)
from nightherd.model.workflows.conductor.pinned import read_pinned
from nightherd.model.workflows.conductor.run_usage import run_limits, time_left_ms
from nightherd.model.workflows.definition import AgentAction
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.next_step import Action, NextStep

DURATION = LimitName.DURATION


def continued_jobs(raised: WorkflowRun, at: datetime, context: FleetContext) -> list[ResumeJob]:
    """Return the resumption of each job that waited at a limit of the run, of the runs below it too.

    `raised` is the run with its new limits.
    """
    found: list[ResumeJob] = []
    for job in _suspended(raised.id, context):
        if job.suspend_reason is SuspendReason.BUDGET:
            found.append(ResumeJob(job_id=job.id, at=at))
        elif job.suspend_reason is SuspendReason.LIMIT and job.error_code == DURATION.code:
            limits = _with_more_time(job, raised, context)
            if limits is not None:
                options = JobOptions(limits=limits)
                found.append(ResumeJob(job_id=job.id, at=at, overrides=options))
    return found


def check_raised(run: WorkflowRun, given: Mapping[str, int], context: FleetContext) -> None:
    """`RefusedError` for a new maximum that does not help: lower than before, or used up."""
    pinned = context.reader.find_pinned(run.definition_hash)
    if run.is_terminal or pinned is None:
        return
    now = run_limits(run, read_pinned(pinned.body).definition.limits)
    used = context.reader.used_in_run(run.id) + Used(duration=run.worked_ms)
    for text, maximum in given.items():
        name = LimitName(text)
        before, amount = now.get(text), used.amount(name)
        if before is not None and maximum < before:
            problem = (
                f"{shown(name, maximum)} is less than its limit of {shown(name, before)};"
                " a limit can only be raised"
            )
        elif name in (*COUNTED, DURATION) and maximum <= amount:
            problem = (
                f"it has used {shown(name, amount)} already;"
                f" {shown(name, maximum)} is the new maximum, not an addition to it"
            )
        else:
            continue
        raise RefusedError(
            f"{text}: run {run.id}: {problem}", next_step=NextStep(Action.SHOW_RUN, run=run.id)
        )


def _suspended(run_id: RunId, context: FleetContext) -> Iterator[Job]:
    for job in context.reader.jobs_of_run(run_id):
        if job.status is JobStatus.SUSPENDED:
            yield job
    for child in context.reader.runs_of_parent(run_id):
        if not child.is_terminal:
            yield from _suspended(child.id, context)


def _with_more_time(job: Job, raised: WorkflowRun, context: FleetContext) -> dict[str, int] | None:
    """The limits of a job whose run has more time; None where that does not help it."""
    left = time_left_ms(_upwards(RunId(job.workflow_run_id or ""), raised, context))
    given = given_before(job, context.reader)
    own = limits_document(_declared(job, context)).get(DURATION.value)
    most = left if own is None or left is None else min(left, own)
    if most is None or most <= given.get(DURATION.value, most):
        return None
    return {**given, DURATION.value: most}


def _declared(job: Job, context: FleetContext) -> Limits:
    """The limits that the phase of the job declares, and its agent."""
    phase = find_phase(job, context)
    if phase is None:
        return Limits()
    pinned, node = phase
    body = read_pinned(pinned.body)
    action = locate(body.definition.phases, node.key).phase.action
    if not isinstance(action, AgentAction):
        return Limits()
    agent = body.agents.get(action.agent)
    return action.limits if agent is None else action.limits.over(agent.limits)


def _upwards(
    run_id: RunId, raised: WorkflowRun, context: FleetContext
) -> Iterator[tuple[WorkflowRun, Limits]]:
    """Yield a run and those above it, each with the limits that its workflow declares."""
    above: RunId | None = run_id
    while above is not None:
        run = raised if above == raised.id else context.reader.find_run(above)
        pinned = None if run is None else context.reader.find_pinned(run.definition_hash)
        if run is None or pinned is None:
            return
        yield run, read_pinned(pinned.body).definition.limits
        above = run.parent_run_id
