"""Resuming a run: its suspended jobs continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.requests import Resume
from nightherd.engine.operations.resume import Rescue, resume_job
from nightherd.engine.operations.run_requests import ResumeRun
from nightherd.engine.operations.runs import get_run
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.inbox.item import ItemKind
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader


class ResumedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run after its jobs were resumed."""

    run: WorkflowRun
    jobs: Sequence[Job]
    """Those that continue."""
    refused: Sequence[NightherdError] = ()
    """Why the others do not."""


async def resume_run(request: ResumeRun, context: FleetContext, *, rescue: Rescue) -> ResumedRun:
    """Resume every suspended job of the run and of the runs below it; returns once that is durable.

    `RefusedError` when none of them can continue: the run is over, or only an answer continues it.
    """
    run = get_run(context.reader, request.run_id)
    if run.is_terminal:
        is_done = run.status is RunStatus.SUCCEEDED
        action = Action.SHOW_RUN if is_done else Action.RETRY_RUN
        raise RefusedError(
            f"run {run.id} {run.status.phrase}", next_step=NextStep(action, run=run.id)
        )
    resumed: list[Job] = []
    refused: list[NightherdError] = []
    for job in suspended_jobs(context.reader, run.id):
        try:
            agent = _agent(job, context)
            resumed.append(await resume_job(Resume(job_id=job.id), agent, context, rescue=rescue))
        except RefusedError as error:
            refused.append(error)
    if not resumed:
        raise refused[0] if refused else _nothing_suspended(run, context.reader)
    return ResumedRun(run=get_run(context.reader, run.id), jobs=resumed, refused=refused)


def suspended_jobs(reader: StateReader, run_id: RunId) -> Iterator[Job]:
    """Yield the suspended jobs of a run and of the runs below it."""
    for job in reader.jobs_of_run(run_id):
        if job.status is JobStatus.SUSPENDED:
            yield job
    for child in reader.runs_of_parent(run_id):
        if not child.is_terminal:
            yield from suspended_jobs(reader, child.id)


def _agent(job: Job, context: FleetContext) -> Agent:
    if job.agent == COMMANDS_AGENT and context.commands_agent is not None:
        return context.commands_agent
    return agents_of(context).get(job.agent)


def _nothing_suspended(run: WorkflowRun, reader: StateReader) -> RefusedError:
    """Why there is nothing to resume, and what continues the run instead."""
    for item in reader.items_of_run(run.id):
        if item.is_pending:
            is_question = item.kind is ItemKind.QUESTION
            action = Action.ANSWER_QUESTION if is_question else Action.ANSWER_INBOX_ITEM
            return RefusedError(
                f"run {run.id} waits for an answer: {item.title}",
                next_step=NextStep(action, item=item.id),
            )
    return RefusedError(
        f"run {run.id} {run.status.phrase}, and none of its jobs is suspended",
        next_step=NextStep(Action.SHOW_RUN, run=run.id),
    )
