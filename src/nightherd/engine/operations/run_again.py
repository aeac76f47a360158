"""Runs again: a new run that keeps what an earlier one has done, by retry or by fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.new_job import (
    masked_inputs,
)
from nightherd.engine.operations.run_requests import (
    ForkRun,
    RetryRun,
)
from nightherd.engine.operations.runs import Started, check_agents, get_run, record_run
from nightherd.engine.workflows.kept_sessions import hand_on
from nightherd.errors import InvalidInputsError, RefusedError, UsageError
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.concurrency import concurrency_key
from nightherd.model.workflows.conductor.keeping import kept_nodes
from nightherd.model.workflows.conductor.pinned import read_pinned
from nightherd.model.workflows.conductor.run_records import context_of, trigger_from
from nightherd.model.workflows.definition import every_phase
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
)
from nightherd.model.workflows.run import RunStatus, generate_run_id
from nightherd.model.workflows.triggers import complete_inputs
from nightherd.next_step import Action, NextStep


async def retry_run(request: RetryRun, context: FleetContext) -> Started:
    """Return a new run that keeps what is done. `RefusedError` for a run that is not over, or has nothing left to do."""
    run = get_run(context.reader, request.run_id)
    check_is_whole(run)
    if not run.is_terminal:
        raise RefusedError(
            f"run {run.id} {run.status.phrase}", next_step=NextStep(Action.CANCEL_RUN, run=run.id)
        )
    if run.status is RunStatus.SUCCEEDED:
        raise RefusedError(
            f"run {run.id} has succeeded: there is nothing left to do",
            hint="fork it at a phase to do that phase and what follows again",
        )
    return await record_run(lambda _=None: retry_change(run, request.by, context, request), context)


def retry_change(
    run: WorkflowRun, by: str, context: FleetContext, request: RetryRun | None = None
) -> StartRun:
    """Return the change that does the rest of an ended run again."""
    change = _again(run, by, context, without=None, inputs=None)
    key = request.dedupe_key if request is not None else None
    return replace(change, run=replace(change.run, retried_from=run.id, dedupe_key=key))


def check_is_whole(run: WorkflowRun) -> None:
    """Raise `RefusedError` for a run that another run has started: that one waits for it, and for no other."""
    if run.parent_run_id is not None:
        raise RefusedError(
            f"run {run.id} is a part of run {run.root}",
            next_step=NextStep(Action.RETRY_RUN, run=run.root),
        )


async def fork_run(request: ForkRun, context: FleetContext) -> Started:
    """Return a new run that keeps what is done, but for a phase and all that depends on it."""
    run = get_run(context.reader, request.run_id)
    check_is_whole(run)
    definition = read_pinned(get_pinned(run, context).body).definition
    names = [phase.name for phase in definition.phases]
    if request.at_phase not in names:
        inner = {phase.name for phase in every_phase(definition.phases)}
        where = " inside a block; fork at the block" if request.at_phase in inner else ""
        raise UsageError(
            f"{run.workflow_name} has no phase {request.at_phase!r} of its own{where};"
            f" its phases are {', '.join(names)}"
        )

    def make(_: StartRun | None = None) -> StartRun:
        change = _again(run, request.by, context, without=request.at_phase, inputs=request.inputs)
        forked = replace(change.run, forked_from=run.id, dedupe_key=request.dedupe_key)
        return replace(change, run=forked)

    return await record_run(make, context)


def _again(
    run: WorkflowRun,
    by: str,
    context: FleetContext,
    *,
    without: str | None,
    inputs: Mapping[str, Any] | None,
) -> StartRun:
    """A new run of the same definition, with the nodes that it keeps."""
    pinned = get_pinned(run, context)
    definition = read_pinned(pinned.body).definition
    check_agents(definition, context)
    at = context.clock.now()
    run_id = generate_run_id(at, context.random_text)
    nodes = context.reader.nodes_of_run(run.id)
    texts = _texts_of(nodes, context)
    kept, kept_texts = kept_nodes(run_id, definition, nodes, texts, at, without=without)
    kept, branches = hand_on(kept, definition, at, context)
    before = context.reader.find_run_context(run.id)
    values: Mapping[str, Any] = {} if before is None else before.context
    given = values.get("inputs", {})
    if inputs is not None:
        given, problems = complete_inputs(definition.inputs, {**given, **inputs})
        if problems:
            raise InvalidInputsError("; ".join(one.message for one in problems))
        given = masked_inputs(given, context.secrets)
    trigger = trigger_from(values.get("trigger", {}))
    fresh = WorkflowRun(
        id=run_id,
        workflow_name=run.workflow_name,
        trigger_id=run.trigger_id,
        trigger_type=run.trigger_type,
        status=RunStatus.QUEUED,
        current_phase=run.current_phase if kept else "",
        started_at=at,
        updated_at=at,
        repo=run.repo,
        issue_number=run.issue_number,
        attempt=run.attempt + 1,
        concurrency_key=concurrency_key(definition, given, trigger),
        started_by=by,
        limits=run.limits,
    )
    return StartRun(
        run=fresh,
        context=context_of(run_id, given, trigger),
        pinned=pinned,
        max_runs=definition.concurrency.max_runs,
        when_busy=definition.concurrency.when_busy,
        kept=kept,
        kept_texts=kept_texts,
        branches=branches,
    )


def get_pinned(run: WorkflowRun, context: Stores) -> PinnedWorkflow:
    """Return what the run runs; `RefusedError` for one that came from elsewhere without it."""
    pinned = context.reader.find_pinned(run.definition_hash)
    if pinned is None:
        raise RefusedError(
            f"run {run.id} was imported without its definition, so nothing can continue it",
            next_step=NextStep(Action.RUN_WORKFLOW, workflow=run.workflow_name),
        )
    return pinned


def _texts_of(nodes: Sequence[WorkflowNode], context: Stores) -> dict[str, WorkflowNodeTexts]:
    found = {}
    for node in nodes:
        texts = context.reader.find_node_texts(node.id)
        if texts is not None:
            found[node.id] = texts
    return found
