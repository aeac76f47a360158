"""The operator's log: what happens to jobs is written down, for those who were not there."""

from __future__ import annotations

from collections.abc import Callable

from nightherd.engine.contexts import Stores
from nightherd.engine.jobs.recorder import OnEvent
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import Event
from nightherd.model.log import LogLevel, LogLine, line_of_end, line_of_event, line_of_start
from nightherd.views.jobs.jobs import own_job


def log_start(job: Job, context: Stores) -> None:
    """An execution of the job begins here."""
    context.log.write(line_of_start(job, context.clock.now()))


def log_end(job: Job, context: Stores) -> None:
    """The execution has ended, and the job stands so."""
    now = context.clock.now()
    context.log.write(line_of_end(own_job(context.reader, job, now), now))


def logged(job: Job, context: Stores, on_event: OnEvent) -> OnEvent:
    """`on_event`, with what operators hear of written down as well."""

    def note(event: Event) -> None:
        line = line_of_event(job, event)
        if line is not None:
            context.log.write(line)
        on_event(event)

    return note


def log_rescue(job: Job, context: Stores) -> None:
    """The job's worker was gone, and the job is taken care of."""
    context.log.write(
        LogLine(
            at=context.clock.now(),
            level=LogLevel.WARNING,
            event="job.rescued",
            agent=job.agent,
            job=job.id,
            message="its worker was gone",
            data={"status": job.status.value, "restart_count": job.restart_count},
        )
    )


def log_trouble(context: Stores, report: Callable[[str], None]) -> Callable[[str], None]:
    """Return `tell` with every report written to the operator log as well."""

    def logged(text: str) -> None:
        context.log.write(
            LogLine(at=context.clock.now(), level=LogLevel.WARNING, event="trouble", message=text)
        )
        report(text)

    return logged
