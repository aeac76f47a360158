"""Burn as every surface shows it: how fast limits are used up, and where that leads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.model.costs.breakdown import FamilyUse
from nightherd.model.costs.burn import WINDOW, Forecast, Rate, amount_in, forecast, used_for
from nightherd.model.costs.cell import Amounts, quarter_of
from nightherd.model.costs.period import Day, Period, day_at
from nightherd.model.limits.limits import COUNTED, NO_LIMITS, LimitName, Scope, number
from nightherd.model.limits.spending import next_day
from nightherd.model.units import MicroUsd, to_usd
from nightherd.views.costs.limits import LimitView, limits_of_agent, limits_of_fleet
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Fleet
    from nightherd.ports import Costs, StateReader


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that several jobs share, and what becomes of it at the present rate."""

    limit: LimitView
    forecast: Forecast
    resets_at: datetime | None = None


class Burn(msgspec.Struct, frozen=True, kw_only=True):
    """How fast things are used up, and where that leads."""

    since: datetime
    """Since when the rate is measured."""
    seconds: int
    recent: Amounts
    """What was used since then."""
    today: Amounts
    day: Day
    ends_at: datetime
    """When today ends."""
    remaining: timedelta
    caps: Sequence[Cap]

    def rate(self, name: LimitName) -> Rate:
        """Return the rate of what a limit is about."""
        return Rate(amount=amount_in(self.recent, name), seconds=self.seconds)

    def expected(self, name: LimitName) -> int:
        """Return what will have been used when today ends."""
        return amount_in(self.today, name) + self.rate(name).within(self.remaining)


def show_burn(
    costs: Costs, reader: StateReader, fleet: Fleet, agent: str | None, zone: tzinfo, now: datetime
) -> Burn:
    """Return how fast the fleet, or one agent, uses up its limits."""
    until = quarter_of(now) + 1
    recent = Period(first=quarter_of(now - WINDOW), until=until)
    day, ends_at = day_at(now, zone)
    uses = costs.families(recent)
    scope, owner = (Scope.FLEET, "") if agent is None else (Scope.AGENT, agent)
    today = costs.families(Period(first=day.first, until=until))
    seconds = int((now - recent.since).total_seconds())
    limits = _shared_limits(fleet, reader, agent, now)
    return Burn(
        since=recent.since,
        seconds=seconds,
        recent=used_for(scope, owner, uses),
        today=used_for(scope, owner, today),
        day=day,
        ends_at=ends_at,
        remaining=ends_at - now,
        caps=[_cap(limit, uses, seconds, now) for limit in limits],
    )


def _shared_limits(
    fleet: Fleet, reader: StateReader, agent: str | None, now: datetime
) -> list[LimitView]:
    """The limits that several jobs share: of the fleet, and of its agents and their schedules, or of one of them."""
    found = list(limits_of_fleet(fleet, reader, now))
    for one in fleet.agents.values():
        if agent in (None, one.name):
            found += limits_of_agent(one, NO_LIMITS, reader, now)
    return [limit for limit in found if limit.used is not None and limit.name in COUNTED]


def _cap(limit: LimitView, uses: Iterable[FamilyUse], seconds: int, now: datetime) -> Cap:
    amounts = used_for(limit.scope, limit.owner, uses)
    rate = Rate(amount=amount_in(amounts, limit.name), seconds=seconds)
    resets_at = next_day(now) if limit.is_day else None
    return Cap(
        limit=limit,
        forecast=forecast(limit.used or 0, limit.maximum, rate, now, resets_at),
        resets_at=resets_at,
    )


class PerHourRow(TypedDict):
    """What is used in an hour."""

    cost_usd: float
    tokens: float
    turns: float


class TodayRow(TypedDict):
    """What was used today, and what will have been when the day ends."""

    day: str
    ends_at: str
    cost_usd: float
    expected_usd: float
    tokens: int
    expected_tokens: int
    turns: int
    expected_turns: int


class CapRow(TypedDict):
    """A limit that several jobs share, and what becomes of it at the present rate."""

    scope: Scope
    owner: str | None
    limit: LimitName
    per_day: bool
    maximum: float
    used: float
    left: float
    on_reached: str
    per_hour: float
    is_reached: bool
    reached_at: str | None
    resets_at: str | None
    expected: float | None


class BurnDocument(TypedDict):
    """How fast things are used up, and where that leads."""

    rate_since: str
    per_hour: PerHourRow
    today: TodayRow
    caps: list[CapRow]


def burn_document(burn: Burn) -> BurnDocument:
    spend, tokens, turns = LimitName.SPEND, LimitName.TOKENS, LimitName.TURNS
    return {
        "rate_since": timestamp(burn.since),
        "per_hour": {
            "cost_usd": _per_hour(burn.rate(spend), spend),
            "tokens": _per_hour(burn.rate(tokens), tokens),
            "turns": _per_hour(burn.rate(turns), turns),
        },
        "today": {
            "day": burn.day.name,
            "ends_at": timestamp(burn.ends_at),
            "cost_usd": to_usd(burn.today.usage.cost_microusd),
            "expected_usd": to_usd(MicroUsd(burn.expected(spend))),
            "tokens": burn.today.tokens,
            "expected_tokens": burn.expected(tokens),
            "turns": burn.today.turns,
            "expected_turns": burn.expected(turns),
        },
        "caps": [_cap_row(cap) for cap in burn.caps],
    }


def _cap_row(cap: Cap) -> CapRow:
    limit, coming = cap.limit, cap.forecast
    name = limit.name
    return {
        "scope": limit.scope,
        "owner": limit.owner or None,
        "limit": name,
        "per_day": limit.is_day,
        "maximum": number(name, limit.maximum),
        "used": number(name, limit.used or 0),
        "left": number(name, limit.left or 0),
        "on_reached": limit.outcome,
        "per_hour": _per_hour(coming.rate, name),
        "is_reached": coming.is_reached,
        "reached_at": timestamp(coming.reached_at),
        "resets_at": timestamp(cap.resets_at),
        "expected": None if coming.expected is None else number(name, coming.expected),
    }


def _per_hour(rate: Rate, name: LimitName) -> float:
    return round(number(name, round(rate.per_hour())), 6)
