"""`state.yaml`: the fleet at a glance, put together from one piece of text per agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nightherd.files.yaml_dump import dump_field
from nightherd.mirror.position import Memory
from nightherd.model.agents.state import AgentState, AgentStatus, stands_for_workflow
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus
from nightherd.ports import StateReader

SINGLE = 20
"""So many agents are asked for one by one; for more of them all rows are read at once."""


class StateText:
    """Keeps each agent's piece: a change of one agent of a thousand renders one piece, not a thousand."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._pieces: dict[str, str] = {}

    def refresh(
        self, memory: Memory, agents: Collection[str], running: Iterable[ObservedJob]
    ) -> None:
        """Render the pieces of `agents` anew, and of those that have none yet; `running` are the jobs that run."""
        shown = {
            name for name in (*memory.declared, *memory.agents) if not stands_for_workflow(name)
        }
        for name in self._pieces.keys() - shown:
            del self._pieces[name]
        due = shown & {*agents, *(shown - self._pieces.keys())}
        states, schedules = self._rows(due)
        for name in due:
            jobs = [job for job in running if job.agent == name]
            state = states.get(name) or AgentState(name=name)
            document = agent_document(
                state, schedules.get(name, ()), jobs, memory.blocked.get(name)
            )
            self._pieces[name] = dump_field(name, document, "  ")

    def text(self, memory: Memory) -> str:
        """The whole file."""
        fleet = {} if memory.started_at is None else {"started_at": memory.started_at}
        pieces = [self._pieces[name] for name in sorted(self._pieces)]
        agents = "agents:\n" + "\n".join(pieces) if pieces else "agents: {}\n"
        return f"{dump_field('fleet', fleet)}\n{agents}"

    def _rows(
        self, names: Collection[str]
    ) -> tuple[Mapping[str, AgentState], Mapping[str, Sequence[ScheduleState]]]:
        """The rows of these agents and of their schedules, by the agent's name."""
        reader = self._reader
        if len(names) <= SINGLE:
            found = [reader.find_agent(name) for name in names]
            states = {state.name: state for state in found if state is not None}
            return states, {name: reader.list_schedules(name) for name in names}
        schedules: dict[str, list[ScheduleState]] = {}
        for schedule in reader.list_schedules():
            schedules.setdefault(schedule.agent, []).append(schedule)
        return {state.name: state for state in reader.list_agents()}, schedules


def agent_document(
    agent: AgentState,
    schedules: Sequence[ScheduleState],
    running: Sequence[ObservedJob],
    blocked: str | None = None,
) -> dict[str, Any]:
    """What the state says of one agent, its running jobs and its schedules; `blocked` is why it may not run."""
    next_schedule, next_trigger_at = next_trigger(agent, schedules)
    current, status, lost = agent.current_job, agent.status, _oldest_lost(running)
    if lost is not None:
        # `running` is for jobs that a live worker has.
        live = [job.id for job in running if job.lost is None]
        current = live[0] if live else None
        idle = AgentStatus.ERROR if agent.error_message is not None else AgentStatus.IDLE
        status = AgentStatus.RUNNING if live else idle
    if blocked is not None and status is not AgentStatus.RUNNING:
        status = AgentStatus.ERROR
    error = (blocked or agent.error_message) if status is AgentStatus.ERROR else None
    return {
        "status": status.value,
        "current_job": current,
        "last_job": agent.last_job,
        "next_schedule": next_schedule,
        "next_trigger_at": next_trigger_at,
        "container_id": agent.container_id,
        # Pieces are parted by blank lines, which a text that ends with some would take for its own.
        "error_message": error.rstrip() if error is not None else None,
        **({} if lost is None else {"lost": lost}),
        "schedules": {
            schedule.name: {
                **_schedule_status(schedule, running),
                "last_run_at": schedule.last_run_at,
                "next_run_at": schedule.next_run_at,
                "last_error": schedule.last_error.rstrip() if schedule.last_error else None,
            }
            for schedule in sorted(schedules, key=lambda schedule: schedule.name)
        },
    }


def _schedule_status(schedule: ScheduleState, running: Sequence[ObservedJob]) -> dict[str, Any]:
    """The schedule's status, and its lost job while no other of its jobs runs."""
    mine = [job for job in running if job.schedule == schedule.name]
    lost = _oldest_lost(mine)
    if lost is None or any(job.lost is None for job in mine):
        return {"status": schedule.status.value}
    is_running = schedule.status is ScheduleStatus.RUNNING
    status = ScheduleStatus.IDLE if is_running else schedule.status
    return {"status": status.value, "lost": lost}


def _oldest_lost(running: Sequence[ObservedJob]) -> dict[str, Any] | None:
    """The oldest job that has no live worker, and since when."""
    for job in running:
        if job.lost is not None:
            return {"job": job.id, "since": job.lost.since, "next": job.lost.next}
    return None


def next_trigger(
    agent: AgentState, schedules: Sequence[ScheduleState]
) -> tuple[str | None, datetime | None]:
    """The schedule that is due first, and when; the row's own word where no schedule says."""
    due = [
        (schedule.next_run_at, schedule.name)
        for schedule in schedules
        if schedule.next_run_at is not None and schedule.status is not ScheduleStatus.DISABLED
    ]
    if not due:
        return agent.next_schedule, agent.next_trigger_at
    at, name = min(due)
    return name, at
