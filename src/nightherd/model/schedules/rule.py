"""Schedule: a declared rule in time and the job it makes. What it came to so far is `ScheduleState`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from nightherd.errors import InvalidValueError
from nightherd.model.hooks import Hook
from nightherd.model.inbox.review import ApprovalRule
from nightherd.model.limits.limits import NO_LIMITS, Limits
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.sessions.session import SessionTerms
from nightherd.model.units import format_duration
from nightherd.model.work.source import WorkSource
from nightherd.model.workspaces.policy import WorkspacePolicy

UTC_NAME = "UTC"


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Due at every whole multiple of `every` since 1970 in UTC.

    So the instants are the same for every process and after every restart.
    """

    every: timedelta

    def __str__(self) -> str:
        return f"every {format_duration(self.every)}"


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """Due whenever the clock on the wall of `timezone` matches `expression`."""

    expression: str
    timezone: str = UTC_NAME

    def __str__(self) -> str:
        return f"{self.expression} ({self.timezone})"


Rule = Interval | Cron


class CatchUp(StrEnum):
    """Which slots that passed while nothing could fire them still get a job."""

    NONE = "none"
    """None; the latest still does within its grace."""
    ONE = "one"
    """The latest."""
    ALL = "all"
    """Every one, in order; a slot that would overlap waits instead of being skipped."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One declared schedule of an agent, resolved."""

    name: str
    rule: Rule | None
    """None for one that no time makes due: it fires by `schedule run` only."""
    timezone: str = UTC_NAME
    """Where a cron expression that replaces the rule is read."""
    prompt: str | None = None
    """What its jobs are asked; None for the agent's `default_prompt`."""
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    enabled: bool = True
    jitter: timedelta = timedelta()
    max_overlap: int = 1
    """How many of its jobs may be there at once, waiting ones included."""
    max_suspended: int = 3
    """How many of its jobs may be suspended, where each has its own session, before slots are skipped."""
    catch_up: CatchUp = CatchUp.NONE
    pause_after: int = 5
    """Failures in a row after which it pauses itself; 0 for never."""
    job_timeout: timedelta | None = None
    workspace: WorkspacePolicy | None = None
    """Where its jobs work, complete; None: as the agent says."""
    working_directory: str | None = None
    """The directory that is made from; None for the agent's."""
    session: SessionTerms | None = None
    """How its jobs share context, when not as the agent says; such a session is the schedule's own."""
    resume_session: bool | None = None
    """True: each job continues where the last one ended; False: each starts again. None: as the agent says."""
    limits: Limits = NO_LIMITS
    """What each of its jobs may use; what is not said is as the agent says."""
    hooks: tuple[Hook, ...] = ()
    approvals: tuple[ApprovalRule, ...] = ()
    """Calls of its jobs that a person has to allow first, besides those of its agent."""
    """What is done besides when something happens to one of its jobs."""
    notify: tuple[NotifyTarget, ...] = ()
    """Where people are told besides what happens to its jobs."""
    work: WorkSource | None = None
    """Where its jobs come from: each works on an issue, and a slot without one is skipped."""
    output_to_file: bool = False
    """Whether each of its jobs also leaves its record as plain text."""


def rule_text(rule: Rule | None) -> str:
    """The rule as rows and people have it; empty for one that no time makes due."""
    return "" if rule is None else str(rule)


ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
ANY_TIME = datetime(2025, 1, 1, tzinfo=UTC)
LONGEST = 256


def check_cron(text: str) -> str:
    """The expression that `text` stands for, aliases written out, or `InvalidValueError`."""
    expression = ALIASES.get(text.strip().lower(), text.strip())
    try:
        if len(expression) > LONGEST or not expression.isascii():
            raise CronSimError("it is too long or not ASCII")
        CronSim(expression, ANY_TIME)
    except CronSimError as error:
        reason = str(error).lower() or "it has the wrong number of fields"
        raise InvalidValueError(f"{text!r} is not a cron expression: {reason}") from error
    return expression


def next_match(expression: str, timezone: str, after: datetime) -> datetime | None:
    """The first instant after `after` that matches, in UTC; None when there is none in fifty years.

    A time that the clocks skip in spring comes right after the gap, one that they show twice in autumn
    comes once (the first time), as in Debian's cron; with a `*` in minutes or hours, or with seconds, every
    real instant counts.
    """
    for found in CronSim(expression, after.astimezone(ZoneInfo(timezone))):
        at = found.astimezone(UTC)
        # In the hour that is shown twice, and after a gap, two matches may fall on one instant.
        if at > after:
            return at
    return None
