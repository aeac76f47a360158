"""Changes of schedules that make no job: planning the next slot, and overriding what is declared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSchedule:
    """What a schedule is by its declaration, and which slot of it comes next.

    `override` and `replaces` are what was found when this was worked out; with another override, or another
    slot to come, it is refused.
    """

    agent: str
    schedule: str
    rule: str
    enabled: bool
    """As declared; an override has the last word."""
    pause_after: int
    next_due_at: datetime | None
    next_run_at: datetime | None
    override: str | None = None
    """The rule of the override, if it has one."""
    replaces: datetime | None = None
    """The instant of the slot that was to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideSchedule:
    """Switch a schedule on or off, or give it another rule; None leaves that part of the override as it is.

    Enabling forgets the failures it paused itself for. `reset` takes the whole override away.
    """

    agent: str
    schedule: str
    at: datetime
    by: str
    enabled: bool | None = None
    rule: str | None = None
    reset: bool = False
    is_declared_enabled: bool = True
    """What it is without an override."""
