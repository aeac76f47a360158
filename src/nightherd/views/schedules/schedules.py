"""Schedules as every surface shows them: declared, overridden, where they stand, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.agent import WORKFLOW_PREFIX, Agent, Fleet
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.schedules.due import next_slot, parse_rule
from nightherd.model.schedules.jobs import session_key
from nightherd.model.schedules.rule import Rule, Schedule, rule_text
from nightherd.model.schedules.schedule import (
    ScheduleOverride,
    ScheduleState,
    ScheduleStatus,
    Slot,
    may_fire,
    schedule_id,
)
from nightherd.model.sessions.order import needs_person
from nightherd.model.sessions.session import SessionMode
from nightherd.model.units import format_duration
from nightherd.views.costs.limits import limits_of_agents
from nightherd.views.jobs.jobs import (
    IsAtWork,
    every_job,
    first_lost,
    lost_job_row,
    observe_jobs,
    timestamp,
)
from nightherd.views.schedules.rows import OverrideRow, ScheduleRow, SlotRow

if TYPE_CHECKING:
    from nightherd.model.jobs.job import Job
    from nightherd.model.limits.login import LoginLimit
    from nightherd.ports import StateReader


PAGE = 200


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True):
    """One declared schedule and everything known about it."""

    agent: Agent
    schedule: Schedule
    state: ScheduleState
    override: ScheduleOverride | None
    rule: Rule | None
    is_enabled: bool
    next_run_at: datetime | None
    """When its next slot is fired; worked out from the rule when nothing planned it yet."""
    held_by: tuple[Job, ...] = ()
    """The suspended jobs because of which no slot becomes a job."""
    limit: LoginLimit | None = None
    """The rate limit of the agent's login because of which no slot becomes a job."""
    lost_job: ObservedJob | None = None
    """Its oldest job without a live worker, while no other of its jobs runs."""

    @property
    def id(self) -> str:
        """`AGENT/NAME`."""
        return self.state.id


def list_views(
    reader: StateReader, fleet: Fleet, is_at_work: IsAtWork, now: datetime
) -> list[ScheduleView]:
    """Every declared schedule, in the order of the fleet."""
    states = {state.id: state for state in reader.list_schedules()}
    overrides = {override.id: override for override in reader.list_overrides()}
    held = held_schedules(reader, fleet.agents.values())
    limits = limits_of_agents(reader, fleet.agents.values(), now)
    lost = lost_jobs_of_schedules(reader, is_at_work, now)
    return [
        _with_waits(make_view(agent, schedule, states, overrides, now), held, limits, lost)
        for agent in fleet.scheduled.values()
        for schedule in agent.schedules.values()
    ]


def view_of(
    reader: StateReader, agent: Agent, schedule: Schedule, is_at_work: IsAtWork, now: datetime
) -> ScheduleView:
    """One schedule."""
    states = {state.id: state for state in reader.list_schedules(agent.name)}
    overrides = {override.id: override for override in reader.list_overrides()}
    view = make_view(agent, schedule, states, overrides, now)
    limits = limits_of_agents(reader, [agent], now)
    lost = lost_jobs_of_schedules(reader, is_at_work, now)
    return _with_waits(view, held_schedules(reader, [agent]), limits, lost)


def lost_jobs_of_schedules(
    reader: StateReader, is_at_work: IsAtWork, now: datetime
) -> Mapping[str, ObservedJob]:
    """Return, by schedule, the oldest lost job of those none of whose running jobs has a live worker."""
    rows = list(every_job(reader, JobQuery(status=JobStatus.RUNNING, limit=PAGE)))
    jobs: dict[str, list[ObservedJob]] = {}
    for job in observe_jobs(reader, rows, is_at_work, now):
        if job.schedule is not None:
            jobs.setdefault(schedule_id(job.agent, job.schedule), []).append(job)
    lost = {key: first_lost(mine) for key, mine in jobs.items()}
    return {key: job for key, job in lost.items() if job is not None}


def _with_waits(
    view: ScheduleView,
    held: Held,
    limits: Mapping[str, LoginLimit],
    lost: Mapping[str, ObservedJob],
) -> ScheduleView:
    lost_job, state = lost.get(view.id), view.state
    if lost_job is not None and state.status is ScheduleStatus.RUNNING:
        # `running` is for jobs that a live worker has.
        state = replace(state, status=ScheduleStatus.IDLE)
    return replace(
        view,
        state=state,
        held_by=held.get(view.id, ()),
        limit=limits.get(view.agent.name),
        lost_job=lost_job,
    )


def make_view(
    agent: Agent,
    schedule: Schedule,
    states: Mapping[str, ScheduleState],
    overrides: Mapping[str, ScheduleOverride],
    now: datetime,
) -> ScheduleView:
    """The schedule with what is on record about it."""
    key = schedule_id(agent.name, schedule.name)
    override = overrides.get(key)
    rule, is_enabled = schedule.rule, may_fire(schedule.enabled, override)
    if override is not None and override.schedule is not None:
        rule = parse_rule(override.schedule, schedule.timezone)
    known = states.get(key) or ScheduleState(id=key, agent=agent.name, name=schedule.name)
    state = replace(known, pause_after=schedule.pause_after)
    state = replace(state, status=_status(state, is_enabled=is_enabled))
    planned = _planned(state, schedule, rule, now)
    return ScheduleView(
        agent=agent,
        schedule=schedule,
        state=replace(state, next_run_at=planned),
        override=override,
        rule=rule,
        is_enabled=is_enabled,
        next_run_at=planned,
    )


def _status(state: ScheduleState, *, is_enabled: bool) -> ScheduleStatus:
    """Where it stands by what is declared now, which may not be recorded yet."""
    if not is_enabled or state.is_paused:
        return ScheduleStatus.DISABLED
    return ScheduleStatus.IDLE if state.status is ScheduleStatus.DISABLED else state.status


def _planned(
    state: ScheduleState, schedule: Schedule, rule: Rule | None, now: datetime
) -> datetime | None:
    """When it is fired next: as it was planned under this rule, else as it would be now."""
    if state.status is ScheduleStatus.DISABLED:
        return None
    if state.next_run_at is not None and state.rule == rule_text(rule):
        return state.next_run_at
    due = next_slot(state.id, schedule, rule, now) if rule is not None else None
    return due.runs_at if due is not None else None


def workflow_of(view: ScheduleView) -> str | None:
    """The workflow that the schedule starts runs of; None for a schedule of an agent."""
    owner = view.agent.name
    return owner.removeprefix(WORKFLOW_PREFIX) if owner.startswith(WORKFLOW_PREFIX) else None


def schedule_row(view: ScheduleView) -> ScheduleRow:
    """A schedule as lists give it."""
    schedule, state = view.schedule, view.state
    return {
        "id": view.id,
        "agent": view.agent.name,
        "name": schedule.name,
        "status": state.status,
        "lost": lost_job_row(view.lost_job),
        "rule": rule_text(view.rule) or None,
        "declared_rule": rule_text(schedule.rule) or None,
        "enabled": view.is_enabled,
        "is_paused": state.is_paused,
        "last_run_at": timestamp(state.last_run_at),
        "next_run_at": timestamp(view.next_run_at),
        "last_error": state.last_error,
        "consecutive_failures": state.consecutive_failures,
        "jitter": format_duration(schedule.jitter) if schedule.jitter else None,
        "max_overlap": schedule.max_overlap,
        "max_suspended": schedule.max_suspended,
        "catch_up": schedule.catch_up,
        "pause_after": schedule.pause_after,
        "held_by": [job.id for job in view.held_by],
        "rate_limited_until": timestamp(view.limit.until) if view.limit is not None else None,
        "override": override_row(view.override),
    }


def override_row(override: ScheduleOverride | None) -> OverrideRow | None:
    """The override of a schedule."""
    if override is None:
        return None
    return {
        "enabled": override.enabled,
        "schedule": override.schedule,
        "updated_at": timestamp(override.updated_at),
        "updated_by": override.updated_by,
    }


def slot_row(slot: Slot) -> SlotRow:
    """A due instant and what became of it."""
    return {
        "id": slot.id,
        "schedule": slot.schedule_id,
        "due_at": timestamp(slot.due_at),
        "outcome": slot.outcome,
        "job_id": slot.job_id,
        "run_id": slot.run_id,
        "reason": slot.reason,
        "decided_at": timestamp(slot.decided_at),
    }


SUSPENDED_PAGE = 200
"""Suspended jobs that are read at once."""

Held = Mapping[str, tuple["Job", ...]]
"""The suspended jobs of each schedule that is held up, the oldest first, by `AGENT/NAME`."""


def held_schedules(reader: StateReader, agents: Iterable[Agent]) -> Held:
    """Those of the agents; jobs are read only for an agent that has schedules, and some that wait."""
    counts = reader.count_open_jobs()
    found: dict[str, tuple[Job, ...]] = {}
    for agent in agents:
        if not agent.schedules or not counts.get((agent.name, JobStatus.SUSPENDED)):
            continue
        jobs = list(_suspended(reader, agent.name))
        jobs.reverse()
        for schedule in agent.schedules.values():
            held_by = _held_by(reader, agent, schedule, jobs)
            if held_by:
                found[schedule_id(agent.name, schedule.name)] = held_by
    return found


def _held_by(
    reader: StateReader, agent: Agent, schedule: Schedule, suspended: Sequence[Job]
) -> tuple[Job, ...]:
    """The suspended jobs because of which no slot of the schedule becomes a job."""
    own = tuple(job for job in suspended if job.schedule == schedule.name)
    alone = tuple(job for job in own if _is_alone(reader, job))
    if len(alone) >= schedule.max_suspended:
        return alone
    if len(own) - len(alone) >= schedule.max_overlap:
        return tuple(job for job in own if job not in alone)
    session = reader.current_session(session_key(agent, schedule))
    if session is None:
        return ()
    return tuple(job for job in suspended if job.session_id == session.id and needs_person(job))


def _is_alone(reader: StateReader, job: Job) -> bool:
    """Whether the job has its session to itself."""
    session = reader.find_session(job.session_id) if job.session_id is not None else None
    return session is not None and session.mode is SessionMode.FRESH_PER_JOB


def _suspended(reader: StateReader, agent: str) -> Iterator[Job]:
    """The agent's, the newest first."""
    return every_job(
        reader, JobQuery(agent=agent, status=JobStatus.SUSPENDED, limit=SUSPENDED_PAGE)
    )
