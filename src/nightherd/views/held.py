"""Schedules that are held up: so many of their jobs are suspended that no slot becomes a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.schedules.jobs import session_key
from nightherd.model.schedules.schedule import schedule_id
from nightherd.model.sessions.order import needs_person
from nightherd.model.sessions.session import SessionMode
from nightherd.views.jobs import every_job

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Agent
    from nightherd.model.jobs.job import Job
    from nightherd.model.schedules.rule import Schedule
    from nightherd.ports import StateReader

PAGE = 200
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
    return every_job(reader, JobQuery(agent=agent, status=JobStatus.SUSPENDED, limit=PAGE))
