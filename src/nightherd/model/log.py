"""LogLine: one thing an operator may want to know, in the words of the log files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import AuthStatus, HookRan, SystemSubtype
from nightherd.model.text import utc_text
from nightherd.model.units import parse_instant, to_usd


class LogLevel(StrEnum):
    """How much it matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a log file: one JSON object."""

    at: datetime
    level: LogLevel = LogLevel.INFO
    event: str
    """What happened, as in `job.ended`."""
    agent: str | None = None
    job: str | None = None
    message: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict)


class LogPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the log, newest first: after the first `skip` lines of the time `at`."""

    at: datetime
    skip: int = 0

    def __str__(self) -> str:
        return f"{utc_text(self.at)}~{self.skip}"

    @classmethod
    def of(cls, text: str) -> LogPlace:
        """Return the place that `str` wrote; `InvalidValueError` for another text."""
        at, mark, skip = text.partition("~")
        if not mark or not skip.isdecimal() or len(skip) > 9:
            raise InvalidValueError(
                f"{text[:60]!r} is not a place in the log; use the next_before of a page"
            )
        return cls(at=parse_instant(at), skip=int(skip))


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines, newest first, and where the next page begins if there is one."""

    lines: Sequence[LogLine]
    next: LogPlace | None = None


NOTED = {
    SystemSubtype.WARNING: LogLevel.WARNING,
    SystemSubtype.DENIED: LogLevel.WARNING,
    SystemSubtype.RECOVERED: LogLevel.WARNING,
    SystemSubtype.SUSPENDED: LogLevel.WARNING,
    SystemSubtype.RESUMED: LogLevel.INFO,
    SystemSubtype.HOOK: LogLevel.INFO,
    SystemSubtype.AUTH_STATUS: LogLevel.INFO,
}
"""Events of a journal that an operator hears of; everything else is in the journal only."""


def line_of_start(job: Job, at: datetime) -> LogLine:
    """An execution of a job begins."""
    data = {"trigger": job.trigger_type.value, "epoch": job.epoch}
    return LogLine(at=at, event="job.started", agent=job.agent, job=job.id, data=data)


def line_of_end(job: ObservedJob, at: datetime) -> LogLine:
    """An execution of a job has ended, and where the job stands now."""
    took = job.worked
    data: dict[str, Any] = {
        "status": job.status.value,
        "exit_reason": job.exit_reason.value if job.exit_reason else None,
        "suspend_reason": job.suspend_reason.value if job.suspend_reason else None,
        "error_code": job.error_code,
        "turns": job.turns,
        "cost_usd": to_usd(job.cost_microusd),
        "duration_seconds": None if took is None else round(took.total_seconds(), 3),
    }
    return LogLine(
        at=at,
        level=LogLevel.ERROR if job.status is JobStatus.FAILED else LogLevel.INFO,
        event="job.ended" if job.is_terminal else f"job.{job.status.value}",
        agent=job.agent,
        job=job.id,
        message=job.error,
        data={key: value for key, value in data.items() if value is not None},
    )


def line_of_event(job: Job, event: Event) -> LogLine | None:
    """What an event on record is to an operator; None when it is nothing to them."""
    if event.timestamp is None:
        return None
    if isinstance(event, ErrorEvent):
        return LogLine(
            at=event.timestamp,
            level=LogLevel.ERROR,
            event="job.error",
            agent=job.agent,
            job=job.id,
            message=event.message,
            data={"code": event.code, "seq": event.seq},
        )
    if not isinstance(event, SystemEvent) or event.subtype not in NOTED:
        return None
    level, payload = NOTED[event.subtype], payload_of(event)
    if isinstance(payload, HookRan):
        if payload.success is None:
            return None  # it only begins
        level = LogLevel.INFO if payload.success else LogLevel.WARNING
    if isinstance(payload, AuthStatus) and payload.is_authenticated is False:
        level = LogLevel.WARNING
    return LogLine(
        at=event.timestamp,
        level=level,
        event=f"job.{event.subtype.value}",
        agent=job.agent,
        job=job.id,
        message=event.content,
        data={**(event.extra or {}), "seq": event.seq},
    )
