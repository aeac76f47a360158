"""Jobs of schedules: what a slot, or a person who runs a schedule by hand, asks of the agent."""

from __future__ import annotations

from dataclasses import dataclass

from nightherd.engine.submit import SubmitRequest, submission, values_of
from nightherd.engine.workshop import Workshop
from nightherd.errors import AgentBlockedError, NightherdError
from nightherd.model.agent import Agent
from nightherd.model.change import SubmitJob
from nightherd.model.schedule_rule import Schedule
from nightherd.model.scheduled import channel_of, for_schedule, prompt_text, session_terms
from nightherd.model.session import SessionMode
from nightherd.model.trigger import TriggerType


def schedule_request(
    agent: Agent,
    schedule: Schedule,
    *,
    trigger_type: TriggerType = TriggerType.MANUAL,
    trigger_id: str | None = None,
) -> SubmitRequest:
    """What the schedule asks of its agent, or `InvalidValueError` when its prompt cannot be made."""
    mode = for_schedule(agent, schedule.name).session.mode
    return SubmitRequest(
        agent=agent,
        prompt=prompt_text(agent, schedule, values_of(agent, schedule.inputs)),
        inputs=schedule.inputs,
        trigger_type=trigger_type,
        trigger_id=trigger_id,
        schedule=schedule.name,
        session_terms=session_terms(agent, schedule),
        channel_id=channel_of(schedule) if mode is SessionMode.PER_CHANNEL else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoJob:
    """Why a slot has no job."""

    reason: str
    is_error: bool = True
    """Whether it counts as a failure of the schedule, which pauses itself after some."""


def slot_job(
    agent: Agent, schedule: Schedule, slot_id: str, workshop: Workshop
) -> SubmitJob | NoJob:
    """The job of a slot, to be recorded together with it; or why there can be none."""
    try:
        request = schedule_request(
            agent, schedule, trigger_type=TriggerType.SCHEDULE, trigger_id=slot_id
        )
        return submission(request, workshop)
    except AgentBlockedError as error:
        return NoJob(reason=error.message, is_error=False)
    except NightherdError as error:
        return NoJob(reason=f"no job could be made: {error.message}")
