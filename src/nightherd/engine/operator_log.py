"""The operator's log: what happens to jobs is written down, for those who were not there."""

from __future__ import annotations

from collections.abc import Callable

from nightherd.engine.recorder import OnEvent
from nightherd.engine.workshop import Workshop
from nightherd.model.event import Event
from nightherd.model.job import Job
from nightherd.model.log import LogLevel, LogLine, line_of_end, line_of_event, line_of_start
from nightherd.views.observed import own_job


def log_start(job: Job, workshop: Workshop) -> None:
    """An execution of the job begins here."""
    workshop.log.write(line_of_start(job, workshop.clock.now()))


def log_end(job: Job, workshop: Workshop) -> None:
    """The execution has ended, and the job stands so."""
    now = workshop.clock.now()
    workshop.log.write(line_of_end(own_job(workshop.reader, job, now), now))


def logged(job: Job, workshop: Workshop, on_event: OnEvent) -> OnEvent:
    """`on_event`, with what operators hear of written down as well."""

    def note(event: Event) -> None:
        line = line_of_event(job, event)
        if line is not None:
            workshop.log.write(line)
        on_event(event)

    return note


def log_rescue(job: Job, workshop: Workshop) -> None:
    """The job's worker was gone, and the job is taken care of."""
    workshop.log.write(
        LogLine(
            at=workshop.clock.now(),
            level=LogLevel.WARNING,
            event="job.rescued",
            agent=job.agent,
            job=job.id,
            message="its worker was gone",
            data={"status": job.status.value, "restart_count": job.restart_count},
        )
    )


def log_trouble(workshop: Workshop, tell: Callable[[str], None]) -> Callable[[str], None]:
    """`tell`, with everything told written down as well."""

    def told(text: str) -> None:
        workshop.log.write(
            LogLine(at=workshop.clock.now(), level=LogLevel.WARNING, event="trouble", message=text)
        )
        tell(text)

    return told
