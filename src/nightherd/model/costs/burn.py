"""Burn: how fast limits are used up, and where that leads if it goes on. Arithmetic only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from nightherd.model.costs.breakdown import FamilyUse
from nightherd.model.costs.cell import NOTHING, Amounts
from nightherd.model.limits.limits import LimitName, Scope

WINDOW = timedelta(hours=3)
"""The rate is that of so long before now."""
MOST_SECONDS = 100 * 366 * 86_400
"""What is reached later than that is not reached."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """So much was used within a time."""

    amount: int
    seconds: int

    @property
    def is_rising(self) -> bool:
        """Whether anything is being used."""
        return self.amount > 0 and self.seconds > 0

    def per_hour(self) -> float:
        """Return how much that is in an hour."""
        return self.amount * 3_600 / self.seconds if self.seconds > 0 else 0.0

    def within(self, span: timedelta) -> int:
        """Return what will be used in a span at this rate."""
        if not self.is_rising or span <= timedelta():
            return 0
        return self.amount * int(span.total_seconds()) // self.seconds

    def time_for(self, amount: int) -> timedelta | None:
        """Return how long it takes to use so much, in whole seconds; None when that never is."""
        if not self.is_rising:
            return None
        seconds = -(-amount * self.seconds // self.amount)
        return timedelta(seconds=max(seconds, 0)) if seconds <= MOST_SECONDS else None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a limit at the present rate."""

    rate: Rate
    is_reached: bool
    reached_at: datetime | None
    """When it will be reached; None when it is reached, or is not reached before it is counted from nothing again."""
    expected: int | None
    """What will be used of it by then; None when it is never counted from nothing again."""


def forecast(
    used: int, maximum: int, rate: Rate, now: datetime, resets_at: datetime | None
) -> Forecast:
    """Return what becomes of a limit of which `used` is used, and which begins anew at `resets_at`."""
    is_reached = used >= maximum
    takes = None if is_reached else rate.time_for(maximum - used)
    reached_at = None if takes is None else now + takes
    if reached_at is not None and resets_at is not None and reached_at >= resets_at:
        reached_at = None
    expected = None if resets_at is None else used + rate.within(resets_at - now)
    return Forecast(rate=rate, is_reached=is_reached, reached_at=reached_at, expected=expected)


def used_for(scope: Scope, owner: str, uses: Iterable[FamilyUse]) -> Amounts:
    """Return what counts for a limit: of the fleet everything, of an agent also what others used below its jobs."""
    return sum((use.amounts for use in uses if _counts_for(scope, owner, use)), NOTHING)


def _counts_for(scope: Scope, owner: str, use: FamilyUse) -> bool:
    match scope:
        case Scope.FLEET:
            return True
        case Scope.AGENT:
            return owner == use.agent or owner in use.above
        case Scope.SCHEDULE:
            return owner == use.schedule
        case _:
            return False


def amount_in(amounts: Amounts, name: LimitName) -> int:
    """Return how much of what a limit is about."""
    match name:
        case LimitName.SPEND:
            return amounts.usage.cost_microusd
        case LimitName.TOKENS:
            return amounts.tokens
        case LimitName.TURNS:
            return amounts.turns
        case _:
            return 0
