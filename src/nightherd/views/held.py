"""Schedules that are held up: so many of their jobs are suspended that no slot becomes a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from nightherd.model.job import JobQuery, JobStatus
from nightherd.model.schedule import schedule_id
from nightherd.views.jobs import every_job

if TYPE_CHECKING:
    from nightherd.model.agent import Agent
    from nightherd.model.job import Job
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
        for schedule in agent.schedules.values():
            own = tuple(job for job in reversed(jobs) if job.schedule == schedule.name)
            if len(own) >= schedule.max_overlap:
                found[schedule_id(agent.name, schedule.name)] = own
    return found


def _suspended(reader: StateReader, agent: str) -> Iterator[Job]:
    """The agent's, the newest first."""
    return every_job(reader, JobQuery(agent=agent, status=JobStatus.SUSPENDED, limit=PAGE))
