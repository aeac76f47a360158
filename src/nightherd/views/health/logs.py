"""Lines of the operator log, as `logs --json` and the API show them."""

from __future__ import annotations

from typing import Any, TypedDict

from nightherd.model.log import LogLevel, LogLine
from nightherd.views.jobs.jobs import timestamp


class LogRow(TypedDict):
    """One thing that an operator may want to know."""

    at: str
    level: LogLevel
    event: str
    agent: str | None
    job: str | None
    message: str | None
    data: dict[str, Any]


def log_row(line: LogLine) -> LogRow:
    """A line as plain data."""
    return {
        "at": timestamp(line.at),
        "level": line.level,
        "event": line.event,
        "agent": line.agent,
        "job": line.job,
        "message": line.message,
        "data": line.data,
    }
