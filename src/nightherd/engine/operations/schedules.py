"""Schedules: fire due slots, run a schedule by hand, and override what the fleet file says about one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.new_job import (
    JobDraft,
    apply_with_fresh_ids,
    check_admission,
    job_change,
    record_job,
    values_of,
)
from nightherd.engine.operations.requests import RunSchedule, SetSchedule
from nightherd.engine.operations.runs import get_workflow, run_change
from nightherd.engine.schedules.entries import make_entry, plan
from nightherd.engine.work.found import Found, FoundIssue, NoIssue
from nightherd.engine.work.on_request import give_back, record_issue_job, take_next
from nightherd.errors import AgentBlockedError, InvalidValueError, NightherdError, RefusedError
from nightherd.model.agents.agent import WORKFLOW_PREFIX, Agent, workflow_agents
from nightherd.model.change import Answer, FireSlot
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.model.schedules.due import parse_rule
from nightherd.model.schedules.jobs import (
    channel_of,
    find_schedule,
    for_schedule,
    prompt_text,
    session_terms,
)
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import OverrideSchedule, may_fire, schedule_id
from nightherd.model.sessions.session import SessionMode
from nightherd.model.work.changes import StartWork
from nightherd.model.work.issue import Issue
from nightherd.model.work.request import ANY_ISSUE, issue_request
from nightherd.model.work.source import WorkSource
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.next_step import Action, NextStep
from nightherd.ports import FleetReader


async def run_schedule(request: RunSchedule, context: FleetContext) -> Job:
    """Return a new job of the schedule. `InvalidValueError` when its prompt cannot be made.

    One that takes issues works on the next one: `RefusedError` where there is none.
    """
    check_makes_job(request)
    agent, schedule = find_schedule(context.agents, f"{request.agent}/{request.schedule}")
    if schedule.work is not None:
        return await _run_on_issue(request, agent, schedule, schedule.work, context)
    draft = replace(
        _draft(agent, schedule), dedupe_key=request.dedupe_key, refuses_held=request.refuses_held
    )
    return (await record_job(draft, context)).job


async def _run_on_issue(
    request: RunSchedule,
    agent: Agent,
    schedule: Schedule,
    source: WorkSource,
    context: FleetContext,
) -> Job:
    """A new job of the schedule on its next issue; `RefusedError` where there is none."""
    check_admission(agent, schedule.name, NO_OPTIONS, context)
    found = await take_next(agent.name, schedule.name, source, context)
    work = StartWork(id=found.item.id, claim=found.item.claim)
    try:
        asked = issue_request(agent, schedule, found.source, found.issue)
    except NightherdError:
        await give_back(work, context)
        raise
    draft = replace(
        _session_draft(agent, schedule),
        prompt=asked.prompt,
        is_filled=True,
        inputs=asked.inputs,
        dedupe_key=request.dedupe_key,
        refuses_held=request.refuses_held,
        work=work,
    )
    return (await record_issue_job(draft, context)).job


def check_makes_job(request: RunSchedule) -> None:
    """Raise `RefusedError` for a schedule that starts runs of a workflow."""
    if request.agent.startswith(WORKFLOW_PREFIX):
        name = request.agent.removeprefix(WORKFLOW_PREFIX)
        raise RefusedError(
            f"{request.agent}/{request.schedule} starts a workflow, not a job",
            next_step=NextStep(Action.RUN_WORKFLOW, workflow=name),
        )


async def set_schedule(request: SetSchedule, context: FleetContext) -> None:
    """Override the schedule; returns once that is durable and its next slot is planned."""
    scheduled = {**context.agents, **workflow_agents(context.workflows)}
    agent, schedule = find_schedule(scheduled, f"{request.agent}/{request.schedule}")
    rule = None if request.rule is None else request.rule.strip()
    if rule is not None:
        parse_rule(rule, schedule.timezone)
    change = OverrideSchedule(
        agent=agent.name,
        schedule=schedule.name,
        at=context.clock.now(),
        by=request.by,
        is_declared_enabled=schedule.enabled,
        enabled=request.enabled,
        rule=rule,
        reset=request.reset,
    )
    await context.state.apply([change])
    key = schedule_id(agent.name, schedule.name)
    overrides = {override.id: override for override in context.reader.list_overrides()}
    states = {state.id: state for state in context.reader.list_schedules(agent.name)}
    entry = make_entry(agent, schedule, overrides.get(key))
    planned = plan(entry, states.get(key), context.clock.now(), context.reader)
    if planned.change is not None:
        # Refused when a running fleet was quicker: then it is planned.
        await context.state.apply([planned.change])


def why_disabled(agent: Agent, schedule: Schedule, reader: FleetReader) -> str | None:
    """Why the schedule makes no jobs now, as a clause: as declared, overridden, or after failures; None when it does."""
    key = schedule_id(agent.name, schedule.name)
    overrides = {override.id: override for override in reader.list_overrides()}
    is_enabled = may_fire(schedule.enabled, overrides.get(key))
    is_paused = any(one.id == key and one.is_paused for one in reader.list_schedules(agent.name))
    return None if is_enabled and not is_paused else f"schedule {key} is disabled"


class DueSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A due slot of a schedule: what becomes of it if it makes no job, and whether it is to make one."""

    agent: Agent
    schedule: Schedule
    change: FireSlot
    makes_job: bool
    found: Found | None = None
    """What was found for a schedule that takes issues; None while that is not known: then it makes no job yet."""


async def fire_slots(slots: Sequence[DueSlot], context: FleetContext) -> list[Answer]:
    """Record the slots, each with its job, in one transaction, and return what became of each.

    A slot whose job cannot be made or recorded is skipped with the reason; it takes no other with it.
    """
    slot_of = {slot.change.slot.id: slot for slot in slots}

    async def apply(changes: Sequence[FireSlot]) -> Sequence[Answer]:
        try:
            return await context.state.apply(changes)
        except InvalidValueError:
            return [await _fire_alone(change, context) for change in changes]

    return await apply_with_fresh_ids(
        [slot_change(slot, context) for slot in slots],
        lambda change: slot_change(slot_of[change.slot.id], context),
        apply,
    )


def slot_change(slot: DueSlot, context: FleetContext) -> FireSlot:
    """Return the change that records the slot with its job; without one, and why, when none can be made."""
    change = slot.change
    if not slot.makes_job:
        return change
    try:
        if slot.agent.name.startswith(WORKFLOW_PREFIX):
            return replace(change, run=_run_of(slot, context))
        if slot.schedule.work is not None:
            return _work_change(slot, slot.schedule.work, context)
        draft = replace(
            _draft(slot.agent, slot.schedule),
            trigger_type=TriggerType.SCHEDULE,
            trigger_id=change.slot.id,
        )
        return replace(change, job=job_change(draft, context))
    except AgentBlockedError as error:
        return replace(change, slot=replace(change.slot, reason=error.message))
    except NightherdError as error:
        return _without_job(change, f"no job could be made: {error.message}")
    except Exception as error:  # noqa: BLE001 (an edge: one schedule takes no other with it)
        return _without_job(change, f"no job could be made: {type(error).__name__}: {error}")


def _work_change(slot: DueSlot, source: WorkSource, context: FleetContext) -> FireSlot:
    """The slot of a schedule that takes issues: with the one that was found, or skipped when there is none.

    While it is not known yet, the change is only applied where the slot makes no job whatever is found.
    """
    change, found = slot.change, slot.found
    if isinstance(found, NoIssue):
        if found.is_error:
            return _without_job(change, found.reason)
        return replace(change, slot=replace(change.slot, reason=found.reason))
    if isinstance(found, FoundIssue):
        draft = _issue_draft(slot, found.source, found.issue)
        work = StartWork(id=found.item.id, claim=found.item.claim)
        return replace(change, job=job_change(draft, context), work=work)
    draft = _issue_draft(slot, source, ANY_ISSUE)
    return replace(change, job=job_change(draft, context), needs_work=True)


def _issue_draft(slot: DueSlot, source: WorkSource, issue: Issue) -> JobDraft:
    """What the schedule asks of its agent about an issue."""
    asked = issue_request(slot.agent, slot.schedule, source, issue)
    return replace(
        _session_draft(slot.agent, slot.schedule),
        prompt=asked.prompt,
        inputs=asked.inputs,
        trigger_type=TriggerType.SCHEDULE,
        trigger_id=slot.change.slot.id,
    )


def _run_of(slot: DueSlot, context: FleetContext) -> StartRun:
    """The run that a schedule of a workflow starts."""
    name = slot.agent.name.removeprefix(WORKFLOW_PREFIX)
    trigger = RunTrigger(type=TriggerType.SCHEDULE, id=slot.change.slot.id)
    return run_change(
        get_workflow(context, name),
        slot.schedule.inputs,
        trigger,
        context,
        schedule=slot.schedule.name,
    )


async def _fire_alone(change: FireSlot, context: FleetContext) -> Answer:
    try:
        (answer,) = await context.state.apply([change])
    except InvalidValueError as error:
        skipped = _without_job(change, f"no job could be recorded: {error.message}")
        (answer,) = await context.state.apply([skipped])
    return answer


def _without_job(change: FireSlot, reason: str) -> FireSlot:
    """The slot skipped for an error, which counts as a failure of the schedule."""
    slot = replace(change.slot, reason=reason)
    return replace(change, slot=slot, job=None, run=None, is_error=True)


def _draft(agent: Agent, schedule: Schedule) -> JobDraft:
    """What the schedule asks of its agent. `InvalidValueError` when its prompt cannot be made."""
    prompt = prompt_text(agent, schedule, values_of(agent, schedule.inputs))
    return replace(_session_draft(agent, schedule), prompt=prompt, inputs=schedule.inputs)


def _session_draft(agent: Agent, schedule: Schedule) -> JobDraft:
    """A job of the schedule, in the session that its jobs have; not what it is asked."""
    mode = for_schedule(agent, schedule.name).session.mode
    return JobDraft(
        agent=agent,
        schedule=schedule.name,
        session_terms=session_terms(agent, schedule),
        channel_id=channel_of(schedule) if mode is SessionMode.PER_CHANNEL else None,
    )
