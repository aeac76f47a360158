"""Jobs of schedules: what a slot, or a person who runs a schedule by hand, asks of the agent."""

from __future__ import annotations

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.submit import SubmitRequest, submission, values_of
from nightherd.engine.schedules.entries import make_entry, plan
from nightherd.errors import AgentBlockedError, NightherdError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import TriggerType
from nightherd.model.schedules.jobs import channel_of, for_schedule, prompt_text, session_terms
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import OverrideSchedule, schedule_id
from nightherd.model.sessions.session import SessionMode
from nightherd.ports import Clock, StateReader, StateWriter


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


class NoJob(msgspec.Struct, frozen=True, kw_only=True):
    """Why a slot has no job."""

    reason: str
    is_error: bool = True
    """Whether it counts as a failure of the schedule, which pauses itself after some."""


def slot_job(
    agent: Agent, schedule: Schedule, slot_id: str, context: FleetContext
) -> SubmitJob | NoJob:
    """The job of a slot, to be recorded together with it; or why there can be none."""
    try:
        request = schedule_request(
            agent, schedule, trigger_type=TriggerType.SCHEDULE, trigger_id=slot_id
        )
        return submission(request, context)
    except AgentBlockedError as error:
        return NoJob(reason=error.message, is_error=False)
    except NightherdError as error:
        return NoJob(reason=f"no job could be made: {error.message}")


async def override_schedule(
    change: OverrideSchedule,
    agent: Agent,
    schedule: Schedule,
    *,
    state: StateWriter,
    reader: StateReader,
    clock: Clock,
) -> None:
    """Put `change` on record; returns once it is, and the schedule is planned accordingly."""
    await state.apply([change])
    key = schedule_id(agent.name, schedule.name)
    overrides = {one.id: one for one in reader.list_overrides()}
    states = {one.id: one for one in reader.list_schedules(agent.name)}
    entry = make_entry(agent, schedule, overrides.get(key))
    planned = plan(entry, states.get(key), clock.now(), reader)
    if planned.change is not None:
        # Refused when a running fleet was quicker: then it is planned.
        await state.apply([planned.change])
