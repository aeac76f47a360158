"""Deliver: a message that came in by a webhook becomes a job, once, however often it is sent.

The delivery and its job are recorded in one transaction before the sender is told anything: what was
acknowledged is not lost, and what was not is sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightherd.engine.submit import ID_TRIES, SubmitRequest, submission, values_of
from nightherd.engine.workshop import Workshop
from nightherd.errors import AgentNotFoundError, NightherdError, RefusedError
from nightherd.model.agent import Agent
from nightherd.model.change import Applied, RecordDelivery, Refused, Why
from nightherd.model.delivery import Delivery, DeliveryOutcome, delivery_key
from nightherd.model.job import Job
from nightherd.model.trigger import TriggerType
from nightherd.model.web import Endpoint, fill_in, wants_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What came in, its signature checked."""

    delivery_id: str
    body: bytes
    payload: Any
    event: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of a message; the job is None when it was ignored."""

    job: Job | None
    is_new: bool
    reason: str | None = None


async def deliver(
    message: Message, endpoint: Endpoint, agents: Mapping[str, Agent], workshop: Workshop
) -> Delivered:
    """Record the message and what it asks for; returns once both are durable.

    `InvalidValueError` when the payload lacks what the endpoint's templates name: nothing is recorded
    then, so that it can be sent again once they are mended.
    """
    request = None
    if wants_event(endpoint, message.event, message.payload):
        request = _request(message, endpoint, agents)
    for _ in range(ID_TRIES):
        job = submission(request, workshop) if request is not None else None
        change = RecordDelivery(delivery=_delivery(message, endpoint, workshop), job=job)
        (answer,) = await workshop.state.apply([change])
        match answer:
            case Applied(job=made):
                reason = None if made is not None else change.delivery.reason
                return Delivered(job=made, is_new=True, reason=reason)
            case Refused(why=Why.DUPLICATE, job=known):
                return Delivered(job=known, is_new=False, reason="it was taken in before")
            case Refused(why=Why.ID_TAKEN):
                continue
            case Refused(message=found):
                raise RefusedError(found)
    raise NightherdError(f"no free job id after {ID_TRIES} tries")


def _request(message: Message, endpoint: Endpoint, agents: Mapping[str, Agent]) -> SubmitRequest:
    agent = agents.get(endpoint.agent)
    if agent is None:
        raise AgentNotFoundError(f"the fleet has no agent {endpoint.agent!r}")
    inputs = {name: fill_in(value, message.payload, {}) for name, value in endpoint.inputs.items()}
    template = endpoint.prompt if endpoint.prompt is not None else agent.default_prompt
    values = values_of(agent, inputs)
    return SubmitRequest(
        agent=agent,
        prompt=None if template is None else fill_in(template, message.payload, values),
        inputs=inputs,
        trigger_type=TriggerType.WEBHOOK,
        trigger_id=message.delivery_id,
        dedupe_key=f"webhook:{endpoint.name}:{message.delivery_id}",
        channel_id=None
        if endpoint.channel is None
        else fill_in(endpoint.channel, message.payload, values),
    )


def _delivery(message: Message, endpoint: Endpoint, workshop: Workshop) -> Delivery:
    return Delivery(
        id=delivery_key(endpoint.name, message.delivery_id),
        endpoint=endpoint.name,
        delivery_id=message.delivery_id,
        received_at=workshop.clock.now(),
        outcome=DeliveryOutcome.IGNORED,
        event=message.event,
        size=len(message.body),
        sha256=hashlib.sha256(message.body).hexdigest(),
        reason=f"{endpoint.name} does not act on {message.event!r}",
    )
