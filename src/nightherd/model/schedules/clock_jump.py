"""A clock that jumps: the wall clock was set, compared with the time that has passed since boot."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from nightherd.model.units import format_duration

JUMP = timedelta(minutes=1)
"""A smaller difference is how clocks are kept right, or a machine that was busy."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Both clocks at one moment."""

    at: datetime
    since_boot: float
    """Seconds, also those in which the machine slept."""


def jump_between(before: Reading, after: Reading) -> timedelta | None:
    """By how much the wall clock was set between two readings; None when it was not."""
    passed = timedelta(seconds=after.since_boot - before.since_boot)
    jump = (after.at - before.at) - passed
    return jump if abs(jump) > JUMP else None


def describe_jump(jump: timedelta) -> str:
    """What happened to the clock, in words."""
    way = "forward" if jump > timedelta() else "back"
    whole = timedelta(seconds=round(abs(jump).total_seconds()))
    return f"the clock was set {way} by {format_duration(whole)}"
