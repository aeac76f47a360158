"""Overriding a schedule: what somebody sets about it is on record, and the slot that comes next with it."""

from __future__ import annotations

from nightherd.engine.schedule_book import make_entry, plan
from nightherd.model.agent import Agent
from nightherd.model.schedule import schedule_id
from nightherd.model.schedule_change import OverrideSchedule
from nightherd.model.schedule_rule import Schedule
from nightherd.ports import Clock, StateReader, StateWriter


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
