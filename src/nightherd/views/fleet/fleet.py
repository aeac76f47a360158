"""The fleet as `status` shows it: agents, workers and what waits, from rows alone and true right now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.state import (
    AgentState,
    AgentStatus,
    stands_for_workflow,
    with_status,
)
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, SuspendReason
from nightherd.model.limits.spending import day_of
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus
from nightherd.model.units import FREE, MicroUsd, to_usd
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.views.costs.limits import (
    LoginLimitRow,
    current_limits,
    limits_of_agents,
    login_limit_row,
)
from nightherd.views.jobs.jobs import every_job, observe_jobs, timestamp
from nightherd.views.people.inbox import InboxCounts, count_inbox, inbox_counts_row
from nightherd.views.people.inbox_rows import InboxCountsRow
from nightherd.views.runs.runs import OpenRunsRow, open_runs_row
from nightherd.views.schedules.schedules import Held, held_schedules

if TYPE_CHECKING:
    from datetime import datetime

    from nightherd.model.agents.agent import Agent
    from nightherd.model.jobs.lost import ObservedJob
    from nightherd.model.limits.login import LoginLimit
    from nightherd.model.worker import Worker
    from nightherd.model.workflows.run import RunStatus
    from nightherd.ports import StateReader

MOST_SUSPENDED = 100
"""Suspended jobs that are read."""
PAGE = 1_000
"""Running jobs that are read at once."""


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    """One agent: what is declared, what is so."""

    state: AgentState
    declared: Agent | None
    waiting: int
    running: int
    """Jobs that a worker has who is really there."""
    suspended: int
    suspended_jobs: tuple[Job, ...] = ()
    """Those of them that were created last, the newest first; `MOST_SUSPENDED` of the whole fleet."""
    spent_today: MicroUsd = FREE
    """By its jobs, and what jobs of other agents used below them, since midnight, UTC."""
    running_jobs: tuple[ObservedJob, ...] = ()
    """Jobs that a live worker has, the oldest first."""
    lost_jobs: tuple[ObservedJob, ...] = ()
    """Jobs that run by their rows and have no live worker, the oldest first."""

    @property
    def running_cost(self) -> MicroUsd:
        """What its running jobs have cost so far."""
        return MicroUsd(sum(job.cost_microusd for job in self.running_jobs))

    @property
    def lost(self) -> int:
        """How many jobs have no live worker."""
        return len(self.lost_jobs)

    @property
    def lost_job(self) -> ObservedJob | None:
        """The oldest job without a live worker."""
        return self.lost_jobs[0] if self.lost_jobs else None


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """The whole fleet."""

    agents: Sequence[AgentView]
    workers: Sequence[Worker]
    """Those that are really there."""
    waiting: int
    running: int
    suspended: int
    lost: int
    held: Held
    """The schedules that stand still because their jobs are suspended."""
    rate_limits: Sequence[LoginLimit]
    """The limits of logins that last now."""
    stopped: Mapping[str, LoginLimit]
    """The agents whose jobs do not start because of one."""
    spent_today: MicroUsd
    """By all jobs since midnight, UTC."""
    spent_ever: MicroUsd
    inbox: InboxCounts
    """What waits for a person."""
    runs: Mapping[tuple[str, RunStatus], int] = msgspec.field(default_factory=dict)
    """How many runs of each workflow have not ended, by status."""
    at: datetime
    """When this was so."""


def show_fleet(
    reader: StateReader,
    declared: Mapping[str, Agent],
    is_at_work: Callable[[Worker], bool],
    now: datetime,
) -> FleetView:
    """Every agent that is declared or ever worked, the declared ones first.

    What runs the commands of workflows is none; its jobs are counted with the others.
    """
    states = {state.name: state for state in reader.list_agents()}
    counts = reader.count_open_jobs()
    running = list(every_job(reader, JobQuery(status=JobStatus.RUNNING, limit=PAGE)))
    jobs = _by_agent(observe_jobs(reader, running, is_at_work, now))
    suspended = _suspended_jobs(reader, counts)
    spent_today = reader.spent_by_agent(day_of(now))
    workers = [worker for worker in reader.live_workers() if is_at_work(worker)]
    schedules: dict[str, list[ScheduleState]] = {}
    for schedule in reader.list_schedules():
        schedules.setdefault(schedule.agent, []).append(schedule)

    def view_of(name: str) -> AgentView:
        runs, lost = jobs.get((name, True), ()), jobs.get((name, False), ())
        state = states.get(name) or AgentState(name=name)
        blocked = declared[name].blocked_text if name in declared else None
        error = blocked or state.error_message
        seen = with_status(
            replace(state, current_job=runs[0].id if runs else None, error_message=error)
        )
        return AgentView(
            state=with_next(seen, schedules.get(name, ())),
            declared=declared.get(name),
            waiting=counts.get((name, JobStatus.PENDING), 0),
            running=len(runs),
            suspended=counts.get((name, JobStatus.SUSPENDED), 0),
            suspended_jobs=tuple(suspended.get(name, ())),
            spent_today=MicroUsd(spent_today[name].spend if name in spent_today else 0),
            running_jobs=tuple(runs),
            lost_jobs=tuple(lost),
        )

    views = [view_of(name) for name in dict.fromkeys((*declared, *states))]
    return FleetView(
        agents=[view for view in views if not stands_for_workflow(view.state.name)],
        workers=workers,
        waiting=_counted(counts, JobStatus.PENDING),
        running=sum(len(found) for (_, is_live), found in jobs.items() if is_live),
        suspended=_counted(counts, JobStatus.SUSPENDED),
        lost=sum(len(found) for (_, is_live), found in jobs.items() if not is_live),
        held=held_schedules(reader, declared.values()),
        rate_limits=current_limits(reader, now),
        stopped=limits_of_agents(reader, declared.values(), now),
        spent_today=MicroUsd(reader.spent(day_of(now), None, None).spend),
        spent_ever=MicroUsd(reader.spent(None, None, None).spend),
        inbox=count_inbox(reader),
        runs=reader.count_open_runs(),
        at=now,
    )


def _suspended_jobs(
    reader: StateReader, counts: Mapping[tuple[str, JobStatus], int]
) -> Mapping[str, Sequence[Job]]:
    """The newest suspended jobs, by agent."""
    found: dict[str, list[Job]] = {}
    if any(status is JobStatus.SUSPENDED for _, status in counts):
        query = JobQuery(status=JobStatus.SUSPENDED, limit=MOST_SUSPENDED)
        for job in reader.list_jobs(query):
            found.setdefault(job.agent, []).append(job)
    return found


def _counted(counts: Mapping[tuple[str, JobStatus], int], status: JobStatus) -> int:
    """How many jobs stand so, also those of whoever has never worked yet."""
    return sum(count for (_, one), count in counts.items() if one is status)


def with_next(state: AgentState, schedules: Sequence[ScheduleState]) -> AgentState:
    """The agent with the schedule that is due first."""
    due = [
        (schedule.next_run_at, schedule.name)
        for schedule in schedules
        if schedule.next_run_at is not None and schedule.status is not ScheduleStatus.DISABLED
    ]
    if not due:
        return replace(state, next_schedule=None, next_trigger_at=None)
    at, name = min(due)
    return replace(state, next_schedule=name, next_trigger_at=at)


def _by_agent(newest: Sequence[ObservedJob]) -> dict[tuple[str, bool], list[ObservedJob]]:
    """Jobs that are running, the oldest first, by agent and by whether a live worker has them."""
    found: dict[tuple[str, bool], list[ObservedJob]] = {}
    for job in reversed(newest):
        if job.status is JobStatus.RUNNING:
            found.setdefault((job.agent, job.lost is None), []).append(job)
    return found


class SuspendedRow(TypedDict):
    """A suspended job: why it waits, and when it resumes by itself."""

    job_id: str
    suspend_reason: SuspendReason | None
    resumes_at: str | None
    error: str | None


class AgentRow(TypedDict):
    """An agent as lists have it."""

    name: str
    status: AgentStatus
    current_job: str | None
    last_job: str | None
    next_schedule: str | None
    next_trigger_at: str | None
    container_id: str | None
    error_message: str | None
    waiting: int
    running: int
    running_turns: int
    running_cost_usd: float
    suspended: int
    suspended_jobs: list[SuspendedRow]
    lost: int
    lost_job: str | None
    lost_since: str | None
    lost_next: str | None
    is_declared: bool
    runtime: str | None
    description: str | None
    model: str | None
    permission_mode: str | None
    workspace: WorkspaceMode | None
    has_container: bool
    spent_today_usd: float
    spend_cap_today_usd: float | None


class WorkerRow(TypedDict):
    """A worker that is there."""

    id: str
    host: str
    pid: int
    started_at: str
    heartbeat_at: str


class OpenJobsRow(TypedDict):
    """How many jobs have not ended."""

    waiting: int
    running: int
    suspended: int
    lost: int


class SpentRow(TypedDict):
    """What all jobs have cost, since midnight (UTC) and ever."""

    today_usd: float
    ever_usd: float


class HeldScheduleRow(TypedDict):
    """A schedule that stands still because its jobs are suspended."""

    schedule: str
    jobs: list[str]


class FleetDocument(TypedDict):
    """What the fleet is doing."""

    agents: list[AgentRow]
    workers: list[WorkerRow]
    jobs: OpenJobsRow
    spent: SpentRow
    inbox: InboxCountsRow
    runs: OpenRunsRow
    held_schedules: list[HeldScheduleRow]
    rate_limits: list[LoginLimitRow]


def agent_row(view: AgentView) -> AgentRow:
    """An agent as lists give it."""
    state, declared, lost = view.state, view.declared, view.lost_job
    cap = None if declared is None else declared.limits.per_day.spend
    return {
        "name": state.name,
        "status": state.status,
        "current_job": state.current_job,
        "last_job": state.last_job,
        "next_schedule": state.next_schedule,
        "next_trigger_at": timestamp(state.next_trigger_at),
        "container_id": state.container_id,
        "error_message": state.error_message,
        "waiting": view.waiting,
        "running": view.running,
        "running_turns": sum(job.turns for job in view.running_jobs),
        "running_cost_usd": to_usd(view.running_cost),
        "suspended": view.suspended,
        "suspended_jobs": [suspended_row(job) for job in view.suspended_jobs],
        "lost": view.lost,
        "lost_job": None if lost is None else lost.id,
        "lost_since": None if lost is None or lost.lost is None else timestamp(lost.lost.since),
        "lost_next": None if lost is None or lost.lost is None else lost.lost.next,
        "is_declared": declared is not None,
        "runtime": declared.runtime.name if declared is not None else None,
        "description": declared.description if declared is not None else None,
        "model": declared.model if declared is not None else None,
        "permission_mode": declared.permission_mode if declared is not None else None,
        "workspace": declared.workspace.mode if declared is not None else None,
        "has_container": declared is not None and declared.container is not None,
        "spent_today_usd": to_usd(view.spent_today),
        "spend_cap_today_usd": None if cap is None else to_usd(cap),
    }


def suspended_row(job: Job) -> SuspendedRow:
    """A suspended job: why it waits, and when it resumes by itself."""
    return {
        "job_id": job.id,
        "suspend_reason": job.suspend_reason,
        "resumes_at": timestamp(job.resumes_at),
        "error": job.error,
    }


def worker_row(worker: Worker) -> WorkerRow:
    """A worker that is there."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "started_at": timestamp(worker.started_at),
        "heartbeat_at": timestamp(worker.heartbeat_at),
    }


def fleet_document(view: FleetView) -> FleetDocument:
    """The fleet as plain data."""
    return {
        "agents": [agent_row(agent) for agent in view.agents],
        "workers": [worker_row(worker) for worker in view.workers],
        "jobs": {
            "waiting": view.waiting,
            "running": view.running,
            "suspended": view.suspended,
            "lost": view.lost,
        },
        "spent": {
            "today_usd": to_usd(view.spent_today),
            "ever_usd": to_usd(view.spent_ever),
        },
        "inbox": inbox_counts_row(view.inbox, view.at),
        "runs": open_runs_row(view.runs),
        "held_schedules": [
            {"schedule": name, "jobs": [job.id for job in jobs]} for name, jobs in view.held.items()
        ],
        "rate_limits": [login_limit_row(limit, view.stopped) for limit in view.rate_limits],
    }
