"""`state.yaml`: the fleet at a glance, put together from one piece of text per agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nightherd.files.yaml_dump import dump_field
from nightherd.mirror.images import AgentImage, ScheduleImage
from nightherd.mirror.memory import AgentMemory, LiveJob, Memory
from nightherd.model.agents.state import AgentStatus
from nightherd.model.schedules.schedule import ScheduleStatus

NOBODY = AgentMemory()
NOTHING_YET = AgentImage(name="")


class StateText:
    """Keeps each agent's piece: a change of one agent of a thousand renders one piece, not a thousand."""

    def __init__(self) -> None:
        self._pieces: dict[str, str] = {}

    def refresh(self, memory: Memory, agents: Iterable[str]) -> None:
        """Render the pieces of `agents` again, and of those that have none yet."""
        shown = {*memory.declared, *memory.agents}
        for name in set(agents) | (shown - self._pieces.keys()):
            if name in shown:
                running = [(id, job) for id, job in memory.jobs.items() if job.agent == name]
                document = agent_document(
                    memory.agents.get(name, NOBODY), dict(running), memory.blocked.get(name)
                )
                self._pieces[name] = dump_field(name, document, "  ")
            else:
                self._pieces.pop(name, None)

    def text(self, memory: Memory) -> str:
        """The whole file."""
        fleet = {} if memory.started_at is None else {"started_at": memory.started_at}
        pieces = [self._pieces[name] for name in sorted(self._pieces)]
        agents = "agents:\n" + "\n".join(pieces) if pieces else "agents: {}\n"
        return f"{dump_field('fleet', fleet)}\n{agents}"


def agent_document(
    agent: AgentMemory, jobs: Mapping[str, LiveJob], blocked: str | None = None
) -> dict[str, Any]:
    """What the state says of one agent, its open jobs and its schedules; `blocked` is why it may not run."""
    row = agent.image or NOTHING_YET
    next_schedule, next_trigger_at = next_trigger(agent)
    current, lost = row.current_job, _oldest_lost(jobs)
    status = row.status
    if lost is not None:
        # `running` is for jobs that a live worker has.
        live = [id for id, job in jobs.items() if job.is_running and job.lost is None]
        current = live[0] if live else None
        idle = AgentStatus.ERROR if row.error_message is not None else AgentStatus.IDLE
        status = AgentStatus.RUNNING.value if live else idle.value
    if blocked is not None and status != AgentStatus.RUNNING:
        status = AgentStatus.ERROR.value
    error = (blocked or row.error_message) if status == AgentStatus.ERROR else None
    return {
        "status": status,
        "current_job": current,
        "last_job": row.last_job,
        "next_schedule": next_schedule,
        "next_trigger_at": next_trigger_at,
        "container_id": row.container_id,
        # Pieces are parted by blank lines, which a text that ends with some would take for its own.
        "error_message": error.rstrip() if error is not None else None,
        **({} if lost is None else {"lost": lost}),
        "schedules": {
            schedule.name: {
                **_schedule_status(schedule, jobs),
                "last_run_at": schedule.last_run_at,
                "next_run_at": schedule.next_run_at,
                "last_error": schedule.last_error.rstrip() if schedule.last_error else None,
            }
            for schedule in sorted(agent.schedules.values(), key=lambda schedule: schedule.name)
        },
    }


def _schedule_status(schedule: ScheduleImage, jobs: Mapping[str, LiveJob]) -> dict[str, Any]:
    """The schedule's status, and its lost job while no other of its jobs runs."""
    mine = {id: job for id, job in jobs.items() if job.schedule == schedule.name and job.is_running}
    lost = _oldest_lost(mine)
    if lost is None or any(job.lost is None for job in mine.values()):
        return {"status": schedule.status}
    is_running = schedule.status == ScheduleStatus.RUNNING
    return {"status": ScheduleStatus.IDLE.value if is_running else schedule.status, "lost": lost}


def _oldest_lost(jobs: Mapping[str, LiveJob]) -> dict[str, str] | None:
    """The oldest job that has no live worker, and since when."""
    for job_id, job in jobs.items():
        if job.lost is not None:
            return {"job": job_id, "since": job.lost.since, "next": job.lost.next}
    return None


def next_trigger(agent: AgentMemory) -> tuple[str | None, str | None]:
    """The schedule that is due first, and when; the row's own word where no schedule says."""
    row = agent.image or NOTHING_YET
    due = [
        (schedule.next_run_at, schedule.name)
        for schedule in agent.schedules.values()
        if schedule.next_run_at is not None and schedule.status != ScheduleStatus.DISABLED
    ]
    if not due:
        return row.next_schedule, row.next_trigger_at
    at, name = min(due)
    return name, at
