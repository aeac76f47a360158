"""Schedule: a declared rule in time and the job it makes. What it came to so far is `ScheduleState`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from nightherd.model.duration import format_duration
from nightherd.model.hook import Hook
from nightherd.model.limits import NO_LIMITS, Limits
from nightherd.model.session_terms import SessionTerms

UTC_NAME = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Due at every whole multiple of `every` since 1970 in UTC.

    So the instants are the same for every process and after every restart.
    """

    every: timedelta

    def __str__(self) -> str:
        return f"every {format_duration(self.every)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One declared schedule of an agent, resolved."""

    name: str
    rule: Rule | None
    """None for one that no time makes due: it fires by `schedule run` only."""
    timezone: str = UTC_NAME
    """Where a cron expression that replaces the rule is read."""
    prompt: str | None = None
    """What its jobs are asked; None for the agent's `default_prompt`."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
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
    session: SessionTerms | None = None
    """How its jobs share context, when not as the agent says; such a session is the schedule's own."""
    resume_session: bool | None = None
    """True: each job goes on where the last one ended; False: each begins anew. None: as the agent says."""
    limits: Limits = NO_LIMITS
    """What each of its jobs may use; what is not said is as the agent says."""
    hooks: tuple[Hook, ...] = ()
    """What is done besides when something happens to one of its jobs."""
    output_to_file: bool = False
    """Whether each of its jobs also leaves its record as plain text."""


def rule_text(rule: Rule | None) -> str:
    """The rule as rows and people have it; empty for one that no time makes due."""
    return "" if rule is None else str(rule)
