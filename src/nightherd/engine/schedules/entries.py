"""The schedule book: what every declared schedule is by now, overrides included, and its next slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.schedules.due import Due, next_due, next_slot, parse_rule, spread
from nightherd.model.schedules.rule import Rule, Schedule, rule_text
from nightherd.model.schedules.schedule import (
    PlanSchedule,
    ScheduleOverride,
    ScheduleState,
    ScheduleStatus,
    may_fire,
    schedule_id,
)
from nightherd.ports import FleetReader

DECIDED = 1_000
"""How many of a schedule's latest slots are looked at when its clock was set back."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule as it is now."""

    id: str
    agent: Agent
    schedule: Schedule
    rule: Rule | None
    override: ScheduleOverride | None
    is_enabled: bool

    @property
    def override_rule(self) -> str | None:
        """The rule of the override."""
        return None if self.override is None else self.override.schedule


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be recorded about an entry (None when it is on record already), and its next slot."""

    entry: Entry
    due: Due | None
    change: PlanSchedule | None


def entries(
    fleet: Fleet,
    overrides: Mapping[str, ScheduleOverride],
    on_trouble: Callable[[str], None] = lambda text: None,
) -> Iterator[Entry]:
    """Every declared schedule, in the order of the fleet; those of workflows last."""
    for agent in fleet.scheduled.values():
        for schedule in agent.schedules.values():
            key = schedule_id(agent.name, schedule.name)
            yield make_entry(agent, schedule, overrides.get(key), on_trouble)


def make_entry(
    agent: Agent,
    schedule: Schedule,
    override: ScheduleOverride | None,
    on_trouble: Callable[[str], None] = lambda text: None,
) -> Entry:
    """The schedule as it is declared, with its override."""
    key, rule = schedule_id(agent.name, schedule.name), schedule.rule
    if override is not None and override.schedule is not None:
        try:
            rule = parse_rule(override.schedule, schedule.timezone)
        except InvalidValueError as error:
            on_trouble(f"the override of {key} is not used: {error.message}")
    return Entry(
        id=key,
        agent=agent,
        schedule=schedule,
        rule=rule,
        override=override,
        is_enabled=may_fire(schedule.enabled, override),
    )


def plan(entry: Entry, state: ScheduleState | None, now: datetime, reader: FleetReader) -> Plan:
    """The entry's next slot: the one on record if it is one of its rule, else the first from now on."""
    text, schedule = rule_text(entry.rule), entry.schedule
    known = state or ScheduleState(id=entry.id, agent=entry.agent.name, name=schedule.name)
    is_paused = 0 < schedule.pause_after <= known.consecutive_failures
    is_on = entry.is_enabled and not is_paused
    due = _next(entry, entry.rule, known, now, reader) if is_on and entry.rule is not None else None
    next_due_at = due.instant if due is not None else None
    next_run_at = due.runs_at if due is not None else None
    is_recorded = (
        state is not None
        and (state.status is not ScheduleStatus.DISABLED) == is_on
        and (state.rule, state.pause_after) == (text, schedule.pause_after)
        and (state.next_due_at, state.next_run_at) == (next_due_at, next_run_at)
    )
    change = PlanSchedule(
        agent=entry.agent.name,
        schedule=schedule.name,
        rule=text,
        enabled=schedule.enabled,
        pause_after=schedule.pause_after,
        next_due_at=next_due_at,
        next_run_at=next_run_at,
        override=entry.override_rule,
        replaces=known.next_due_at,
    )
    return Plan(entry=entry, due=due, change=None if is_recorded else change)


def retire(state: ScheduleState, override: ScheduleOverride | None) -> PlanSchedule | None:
    """What is to be recorded about a schedule that is declared no more; None when it is at rest already."""
    if state.status is ScheduleStatus.DISABLED and state.next_run_at is None:
        return None
    if override is not None and override.enabled is True:
        return None  # its override would have the last word; it goes with `schedule reset`
    return PlanSchedule(
        agent=state.agent,
        schedule=state.name,
        rule=state.rule,
        enabled=False,
        pause_after=state.pause_after,
        next_due_at=None,
        next_run_at=None,
        override=None if override is None else override.schedule,
        replaces=state.next_due_at,
    )


def _next(
    entry: Entry, rule: Rule, state: ScheduleState, now: datetime, reader: FleetReader
) -> Due | None:
    first = state.next_due_at
    if first is None or state.rule != rule_text(rule):
        return next_slot(entry.id, entry.schedule, rule, now)
    if first <= now or first == next_due(rule, now):
        return spread(entry.id, rule, first, entry.schedule.jitter)
    # The clock was set back. What has its outcome keeps it; the rest of the time to come is as any other.
    slots = reader.list_slots(entry.id, DECIDED)
    decided = frozenset(slot.due_at for slot in slots if slot.due_at > now)
    return next_slot(entry.id, entry.schedule, rule, now, decided)
