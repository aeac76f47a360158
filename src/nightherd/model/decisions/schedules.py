"""Schedules and agents: what firing a slot, switching a schedule and resetting an agent do."""

from __future__ import annotations

from dataclasses import replace

from nightherd.model.agent_state import AgentState, with_status
from nightherd.model.change import (
    Answer,
    Applied,
    FireSlot,
    Refused,
    ResetAgent,
    SetScheduleStatus,
    Why,
)
from nightherd.model.decisions.jobs import submit
from nightherd.model.decisions.rows import Rows
from nightherd.model.schedule import (
    SCHEDULE_LIFECYCLE,
    ScheduleState,
    ScheduleStatus,
    Slot,
    SlotOutcome,
    schedule_id,
)


def fire(change: FireSlot, rows: Rows) -> Answer:
    """The slot and its outcome in one: exactly one process wins a due instant (INV-ONCE)."""
    slot = change.slot
    if rows.get(Slot, slot.id) is not None:
        return Refused(why=Why.DUPLICATE, message=f"slot {slot.id} has its outcome already")
    state = _state(change.agent, change.schedule, rows)
    if change.job is None:
        skipped = replace(slot, outcome=SlotOutcome.SKIPPED, job_id=None)
        return Applied(rows=(skipped, replace(state, next_run_at=change.next_run_at)))
    submitted = submit(change.job, rows)
    if isinstance(submitted, Refused) or submitted.job is None:
        return submitted
    fired = replace(slot, outcome=SlotOutcome.JOB, job_id=submitted.job.id, reason=None)
    is_idle = state.status is ScheduleStatus.IDLE
    running = replace(
        state,
        status=ScheduleStatus.RUNNING if is_idle else state.status,
        next_run_at=change.next_run_at,
    )
    return Applied(rows=(*submitted.rows, fired, running), job=submitted.job)


def set_status(change: SetScheduleStatus, rows: Rows) -> Answer:
    """On or off; saying it again changes nothing."""
    state = _state(change.agent, change.schedule, rows)
    if state.status is change.status:
        return Applied(rows=(state,))
    if not SCHEDULE_LIFECYCLE.allows(state.status, change.status):
        found = f"schedule {state.id} is {state.status}"
        return Refused(why=Why.STATUS, message=found)
    return Applied(rows=(replace(state, status=change.status),))


def reset_agent(change: ResetAgent, rows: Rows) -> Answer:
    """The agent without its error."""
    state = rows.get(AgentState, change.agent)
    if state is None:
        return Refused(why=Why.MISSING, message=f"agent {change.agent} has no state yet")
    return Applied(rows=(with_status(replace(state, error_message=None)),))


def _state(agent: str, schedule: str, rows: Rows) -> ScheduleState:
    key = schedule_id(agent, schedule)
    return rows.get(ScheduleState, key) or ScheduleState(id=key, agent=agent, name=schedule)
