"""Workflow runs: start, cancel, retry, fork and resume them, send them events, switch workflows off and on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.new_job import (
    apply_with_fresh_ids,
    check_admission,
    masked_inputs,
)
from nightherd.engine.operations.run_requests import (
    CancelRun,
    RaiseRunLimits,
    SendRunEvent,
    SetRunScratch,
    SetWorkflow,
    StartWorkflow,
)
from nightherd.engine.workflows.raised_limits import check_raised, continued_jobs
from nightherd.errors import (
    InvalidInputsError,
    InvalidValueError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from nightherd.model.agents.agent import get_agent
from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.jobs.options import JobOptions, ParentLimits
from nightherd.model.json_text import check_value
from nightherd.model.limits.limits import limits_document
from nightherd.model.workflows.conductor import changes
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.concurrency import concurrency_key
from nightherd.model.workflows.conductor.pinned import agents_of, pin, read_pinned
from nightherd.model.workflows.conductor.run_records import context_of
from nightherd.model.workflows.definition import WaitAction, WorkflowDefinition, every_phase
from nightherd.model.workflows.rows import (
    CONTEXT_LIMIT,
    WorkflowContext,
    WorkflowRun,
)
from nightherd.model.workflows.run import RunId, RunStatus, generate_run_id
from nightherd.model.workflows.triggers import RunTrigger, complete_inputs
from nightherd.next_step import Action, NextStep
from nightherd.ports import RunReader

Make = Callable[..., StartRun]


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run after a request that started it, or found it started."""

    run: WorkflowRun
    is_new: bool = True


def get_run(reader: RunReader, run_id: RunId) -> WorkflowRun:
    """Return the run; `NotFoundError` when there is none."""
    run = reader.find_run(run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", next_step=NextStep(Action.LIST_RUNS))
    return run


def get_workflow(context: FleetContext, name: str) -> WorkflowDefinition:
    """Return the workflow of that name, which the fleet has to have, and a person has to have accepted."""
    definition = context.workflows.get(name)
    if definition is not None:
        return definition
    if name in context.withheld_workflows:
        raise RefusedError(
            f"workflow {name!r} is new, and the change has not been accepted",
            next_step=NextStep(Action.ACCEPT_CONFIG),
        )
    raise NotFoundError(
        f"the fleet has no workflow {name!r}", next_step=NextStep(Action.LIST_WORKFLOWS)
    )


async def start_workflow(request: StartWorkflow, context: FleetContext) -> Started:
    """Record the run and begin it; returns once both are durable. The same dedupe key never starts a second run."""
    definition = get_workflow(context, request.workflow)
    if not definition.triggers.api and request.trigger_type.value == "manual":
        raise RefusedError(
            f"workflow {request.workflow!r} is not started by hand: its file says `api: false`"
        )
    trigger = RunTrigger(
        type=request.trigger_type,
        id=request.trigger_id,
        actor=request.by,
        repo=request.repo,
        issue_number=request.issue_number,
    )

    def make(_: StartRun | None = None) -> StartRun:
        return run_change(
            definition, request.inputs, trigger, context, dedupe_key=request.dedupe_key
        )

    return await record_run(make, context)


def run_change(
    definition: WorkflowDefinition,
    given: Mapping[str, Any],
    trigger: RunTrigger,
    context: FleetContext,
    *,
    dedupe_key: str | None = None,
    schedule: str | None = None,
) -> StartRun:
    """Return the change that starts a run. `UsageError` for wrong inputs, other errors when its agents may not run."""
    check_agents(definition, context)
    inputs, problems = complete_inputs(definition.inputs, given)
    if problems:
        raise InvalidInputsError(
            f"workflow {definition.name!r}: " + "; ".join(one.message for one in problems),
            next_step=NextStep(Action.SHOW_WORKFLOW, workflow=definition.name),
        )
    at = context.clock.now()
    inputs = masked_inputs(inputs, context.secrets)
    trigger = replace(trigger, payload=context.secrets.mask(trigger.payload))
    run_id = generate_run_id(at, context.random_text)
    run = WorkflowRun(
        id=run_id,
        workflow_name=definition.name,
        trigger_id=trigger.id or run_id,
        trigger_type=trigger.type,
        status=RunStatus.QUEUED,
        current_phase="",
        started_at=at,
        updated_at=at,
        repo=trigger.repo,
        issue_number=trigger.issue_number,
        concurrency_key=concurrency_key(definition, inputs, trigger),
        schedule=schedule,
        started_by=trigger.actor,
        dedupe_key=dedupe_key,
    )
    kept = context_of(run_id, inputs, replace(trigger, id=trigger.id or run_id))
    check_context(kept)
    return StartRun(
        run=run,
        context=kept,
        pinned=pin(definition, context.agents, context.secrets.mask, at, context.home),
        max_runs=definition.concurrency.max_runs,
        when_busy=definition.concurrency.when_busy,
    )


def check_context(context: WorkflowContext) -> None:
    """Raise `UsageError` when a run would begin with more than can be kept."""
    size = len(json.dumps(dict(context.context), ensure_ascii=False, default=str).encode())
    if size > CONTEXT_LIMIT:
        raise UsageError(
            f"the inputs and the trigger have {size:,} bytes, and at most {CONTEXT_LIMIT:,} are kept",
            hint="put large texts into files of the workspace",
        )


def check_agents(definition: WorkflowDefinition, context: FleetContext) -> None:
    """Raise what keeps an agent of the workflow from running, before anything is recorded."""
    limits = limits_document(definition.limits)
    within = (ParentLimits(job=JobId("run-"), limits=limits),) if limits else ()
    for name in dict.fromkeys(agents_of(definition)):
        agent = get_agent(context.agents, name, context.withheld)
        check_admission(agent, None, JobOptions(within=within), context)
        if not context.can_run(agent.runtime.name):
            raise RefusedError(f"runtime {agent.runtime.name!r} is not available here")


async def record_run(make: Make, context: FleetContext) -> Started:
    """Apply what `make` gives, with fresh ids, and return the run; `RefusedError` when none was started."""
    change = make()
    (answer,) = await apply_with_fresh_ids([change], make, context.state.apply)
    result = started(answer, context, change.run.workflow_name)
    known = None if result.is_new else context.reader.find_run_context(result.run.id)
    if known is not None and known.context["inputs"] != change.context.context["inputs"]:
        raise RefusedError(
            f"{result.run.id} was started with the same key and other inputs",
            next_step=NextStep(Action.SHOW_RUN, run=result.run.id),
        )
    return result


def started(answer: Answer, context: Stores, workflow: str = "") -> Started:
    """Return the run that an answer is about; `RefusedError` when none was started."""
    match answer:
        case Applied(run_id=run_id) if run_id is not None:
            return Started(run=get_run(context.reader, run_id))
        case Refused(why=Why.DUPLICATE, run_id=run_id) if run_id is not None:
            return Started(run=get_run(context.reader, run_id), is_new=False)
        case Refused(why=Why.FULL, message=message, run_id=run_id):
            raise RefusedError(
                message,
                hint="the workflow's `concurrency` says that a further run is dropped",
                next_step=None if run_id is None else NextStep(Action.SHOW_RUN, run=run_id),
            )
        case Refused(why=Why.SWITCHED_OFF, message=message):
            name = workflow or "NAME"
            raise RefusedError(message, next_step=NextStep(Action.ENABLE_WORKFLOW, workflow=name))
        case Refused(message=message):
            raise RefusedError(message)
        case _:
            raise RefusedError("no run was started")


async def cancel_run(request: CancelRun, context: Stores) -> WorkflowRun:
    """End the run; returns once that is on record. What runs in it is stopped by its workers."""
    change = changes.CancelRun(
        run_id=request.run_id, at=context.clock.now(), reason=f"cancelled by {request.by}"
    )
    (answer,) = await context.state.apply([change])
    return _changed(answer, request.run_id, context)


async def send_event(request: SendRunEvent, context: FleetContext) -> WorkflowRun:
    """Send an event to the run; the wait that waits for it, or will, takes it.

    `UsageError` for an event that no phase of the run's definition waits for.
    """
    _check_value("the payload", request.payload)
    _check_event(request, context)
    change = changes.SendEvent(
        run_id=request.run_id,
        name=str(context.secrets.mask(request.name)),
        key=str(context.secrets.mask(request.key or context.random_text(12))),
        at=context.clock.now(),
        by=request.by,
        payload=context.secrets.mask(request.payload),
    )
    (answer,) = await context.state.apply([change])
    if isinstance(answer, Refused) and answer.why is Why.DUPLICATE:
        return get_run(context.reader, request.run_id)
    return _changed(answer, request.run_id, context)


def _check_value(what: str, value: Any) -> None:
    try:
        check_value(value)
    except InvalidValueError as error:
        raise UsageError(f"{what} cannot be stored: {error.message}") from error


def _check_event(request: SendRunEvent, context: FleetContext) -> None:
    run = get_run(context.reader, request.run_id)
    pinned = context.reader.find_pinned(run.definition_hash)
    if run.is_terminal or pinned is None:
        return  # refused with its status
    phases = every_phase(read_pinned(pinned.body).definition.phases)
    known = [one.action.event for one in phases if isinstance(one.action, WaitAction)]
    if request.name in known:
        return
    names = ", ".join(dict.fromkeys(name for name in known if name is not None)) or "none"
    name = str(context.secrets.mask(request.name))
    raise UsageError(
        f"no phase of {run.workflow_name} waits for the event {name!r}; its events are {names}",
        next_step=NextStep(Action.SHOW_RUN, run=run.id),
    )


async def set_scratch(request: SetRunScratch, context: FleetContext) -> Mapping[str, Any]:
    """Set values of the run's scratch and return the whole of it. `RefusedError` when it would be too large."""
    _check_value("the scratch", request.values)
    values = context.secrets.mask(request.values)
    change = changes.MergeScratch(run_id=request.run_id, at=context.clock.now(), values=values)
    (answer,) = await context.state.apply([change])
    _changed(answer, request.run_id, context)
    scratch = context.reader.find_run_scratch(request.run_id)
    return {} if scratch is None else scratch.scratch


async def raise_run_limits(request: RaiseRunLimits, context: FleetContext) -> WorkflowRun:
    """Give the run more; its jobs that wait for that continue, and those of the runs below it.

    `RefusedError` for a maximum that is lower than before, or used up.
    """
    at = context.clock.now()
    run = get_run(context.reader, request.run_id)
    check_raised(run, request.limits, context)
    raised = changes.RaiseRun(run_id=run.id, at=at, limits=request.limits)
    waiting = continued_jobs(replace(run, limits={**run.limits, **request.limits}), at, context)
    first, *_ = await context.state.apply([raised, *waiting])
    return _changed(first, request.run_id, context)


async def set_workflow(request: SetWorkflow, context: FleetContext) -> None:
    """Switch the workflow on or off, or let its file count again; returns once that is durable."""
    if request.workflow not in context.withheld_workflows:
        get_workflow(context, request.workflow)
    change = changes.OverrideWorkflow(
        name=request.workflow, at=context.clock.now(), by=request.by, enabled=request.enabled
    )
    await context.state.apply([change])


def _changed(answer: Answer, run_id: RunId, context: Stores) -> WorkflowRun:
    match answer:
        case Applied():
            return get_run(context.reader, run_id)
        case Refused(why=Why.MISSING, message=message):
            raise NotFoundError(message, next_step=NextStep(Action.LIST_RUNS))
        case Refused(message=message):
            raise RefusedError(message, next_step=NextStep(Action.SHOW_RUN, run=run_id))
