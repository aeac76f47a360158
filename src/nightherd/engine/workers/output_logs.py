"""Output logs: jobs of schedules that ask for it leave their record as plain text when they end."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightherd.engine.workers.worker import WorkerReports
from nightherd.errors import NightherdError
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job


def with_output_logs(
    reports: WorkerReports, fleet: Callable[[], Fleet], write: Callable[[JobId], object]
) -> WorkerReports:
    """The same reports; `write` is called for every job that ends and whose schedule wants a log."""

    def on_end(job: Job) -> None:
        agent = fleet().agents.get(job.agent)
        schedule = agent.schedules.get(job.schedule or "") if agent is not None else None
        if schedule is not None and schedule.output_to_file:
            try:
                write(job.id)
            except (NightherdError, OSError) as error:
                # The record itself is whole; only the copy for people is not there.
                reports.on_trouble(f"the output log of {job.id}: {error}")
        reports.on_end(job)

    return replace(reports, on_end=on_end)
