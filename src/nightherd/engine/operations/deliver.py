"""Deliver: a message that came in by a webhook becomes a job, once, however often it is sent.

The delivery and its job are recorded in one transaction before the sender gets an answer: what was
acknowledged is not lost, and what was not is sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.new_job import (
    JobDraft,
    apply_with_fresh_ids,
    job_change,
    values_of,
)
from nightherd.engine.operations.runs import run_change
from nightherd.engine.operations.schedules import why_disabled
from nightherd.errors import NotFoundError, RefusedError
from nightherd.model.agents.agent import Agent, get_agent
from nightherd.model.change import Applied, RecordDelivery, Refused, Why
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.jobs.overrides import issue_of_inputs, issue_of_payload
from nightherd.model.schedules.jobs import session_terms
from nightherd.model.schedules.rule import Schedule
from nightherd.model.webhooks import (
    Delivery,
    DeliveryOutcome,
    Endpoint,
    delivery_key,
    fill_in,
    fill_in_value,
    wants_event,
)
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.trigger_inputs import filled_inputs, name_in
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.run import RunId
from nightherd.model.workflows.triggers import RunTrigger

LOOK_BACK = 1_000
"""Deliveries among which one that is sent again is looked for, to name its runs."""


class Deliver(msgspec.Struct, frozen=True, kw_only=True):
    """A message for a webhook, its signature checked."""

    endpoint: Endpoint
    delivery_id: str
    body: bytes
    payload: Any
    event: str | None = None


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message; the job is None when it was ignored."""

    job: Job | None
    is_new: bool
    reason: str | None = None
    runs: tuple[RunId, ...] = ()
    """The runs that it started; of an old delivery that is sent again, perhaps none."""


async def deliver(request: Deliver, context: FleetContext) -> Delivered:
    """Record the message and what it asks for; returns once both are durable.

    `InvalidValueError` when the payload lacks what the endpoint's templates name: nothing is recorded
    then, so that it can be sent again once they are fixed.
    """
    endpoint = request.endpoint
    named, started = endpoint.agent, started_by(endpoint.name, context.workflows)
    if named is None and not started:
        raise RefusedError(f"webhook {endpoint.name} has no agent, and no workflow waits for it")
    agent = None if named is None else get_agent(context.agents, named, context.withheld)
    is_wanted = wants_event(endpoint, request.event, request.payload)
    reason = None if is_wanted else f"{endpoint.name} does not act on {request.event!r}"
    draft = None
    if agent is not None:
        reason = reason or _why_not(request, agent, context)
        draft = _draft(request, agent) if reason is None else None
    delivery = _delivery(request, reason, context)

    def make(_: RecordDelivery | None = None) -> RecordDelivery:
        job = job_change(draft, context) if draft is not None else None
        runs = tuple(_run(request, one, context) for one in started) if is_wanted else ()
        return RecordDelivery(delivery=delivery, job=job, runs=runs)

    (answer,) = await apply_with_fresh_ids([make()], make, context.state.apply)
    match answer:
        case Applied(job=job, rows=rows):
            taken = next(row for row in rows if isinstance(row, Delivery))
            runs = _runs_of(taken)
            return Delivered(job=job, is_new=True, reason=taken.reason or reason, runs=runs)
        case Refused(why=Why.DUPLICATE, job=job):
            before = context.reader.list_deliveries(endpoint.name, LOOK_BACK)
            runs = next((_runs_of(one) for one in before if one.id == delivery.id), ())
            said = "this delivery was already accepted"
            return Delivered(job=job, is_new=False, reason=said, runs=runs)
        case Refused(message=refusal):
            raise RefusedError(refusal)


def _runs_of(delivery: Delivery) -> tuple[RunId, ...]:
    return tuple(RunId(run_id) for run_id in delivery.run_ids.split())


def _why_not(request: Deliver, agent: Agent, context: Stores) -> str | None:
    """Why the message makes no job; None when it makes one."""
    endpoint = request.endpoint
    if endpoint.schedule is None:
        return None
    return why_disabled(agent, _schedule(endpoint, agent), context.reader)


def _draft(request: Deliver, agent: Agent) -> JobDraft:
    endpoint, payload = request.endpoint, request.payload
    schedule = _schedule(endpoint, agent) if endpoint.schedule is not None else None
    given = {name: fill_in_value(value, payload) for name, value in endpoint.inputs.items()}
    inputs = given if schedule is None else {**schedule.inputs, **given}
    issue = issue_of_payload(payload)
    if issue is not None and issue_of_inputs(inputs) is None:
        inputs = {"issue_number": issue, **inputs}
    values = values_of(agent, inputs)
    templates = (endpoint.prompt, schedule.prompt if schedule else None, agent.default_prompt)
    template = next((one for one in templates if one is not None), None)
    channel = endpoint.channel
    return JobDraft(
        agent=agent,
        prompt=None if template is None else fill_in(template, payload, values),
        inputs=inputs,
        trigger_type=TriggerType.WEBHOOK,
        trigger_id=request.delivery_id,
        dedupe_key=f"webhook:{endpoint.name}:{request.delivery_id}",
        schedule=schedule.name if schedule is not None else None,
        session_terms=session_terms(agent, schedule) if schedule is not None else None,
        channel_id=None if channel is None else fill_in(channel, payload, values),
    )


def started_by(
    endpoint: str, workflows: Mapping[str, WorkflowDefinition]
) -> list[WorkflowDefinition]:
    """Return the workflows that a message to the endpoint starts."""
    return [one for one in workflows.values() if endpoint in one.triggers.webhooks]


def _run(request: Deliver, workflow: WorkflowDefinition, context: FleetContext) -> StartRun:
    """The run that the message starts. `InvalidValueError` when it lacks what the workflow takes from it."""
    endpoint, payload = request.endpoint, request.payload
    trigger = RunTrigger(
        type=TriggerType.WEBHOOK,
        id=request.delivery_id,
        actor=name_in(payload, "sender", "login"),
        repo=name_in(payload, "repository", "full_name"),
        issue_number=issue_of_payload(payload),
        payload=payload,
    )
    inputs = filled_inputs(workflow.triggers.webhooks[endpoint.name].inputs, trigger)
    key = f"webhook:{endpoint.name}:{request.delivery_id}:{workflow.name}"
    return run_change(workflow, inputs, trigger, context, dedupe_key=key)


def _schedule(endpoint: Endpoint, agent: Agent) -> Schedule:
    schedule = agent.schedules.get(endpoint.schedule or "")
    if schedule is None:
        raise NotFoundError(f"agent {agent.name!r} has no schedule {endpoint.schedule!r}")
    return schedule


def _delivery(request: Deliver, reason: str | None, context: Stores) -> Delivery:
    return Delivery(
        id=delivery_key(request.endpoint.name, request.delivery_id),
        endpoint=request.endpoint.name,
        delivery_id=request.delivery_id,
        received_at=context.clock.now(),
        outcome=DeliveryOutcome.IGNORED,
        event=request.event,
        size=len(request.body),
        sha256=hashlib.sha256(request.body).hexdigest(),
        reason=reason,
    )
