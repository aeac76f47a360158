"""Spending: what was used on which day, and what jobs may still use together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import LimitName, OnLimit, Scope, Used
from nightherd.model.units import FREE, MicroUsd
from nightherd.model.usage import Totals, Usage


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """A row of what one agent used on one day, for one schedule or without."""

    id: str
    """`DAY/AGENT/SCHEDULE`."""
    day: str
    agent: str
    schedule: str = ""
    cost_microusd: MicroUsd = FREE
    tokens: int = 0
    turns: int = 0
    below_cost_microusd: MicroUsd = FREE
    """What jobs of other agents used below its own: theirs too, so it is no part of any sum over agents."""
    below_tokens: int = 0
    below_turns: int = 0


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """What a running job has set aside for what it does next; nothing when it does nothing."""

    job_id: JobId
    agent: str
    schedule: str = ""
    cost_microusd: MicroUsd = FREE
    tokens: int = 0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that several jobs share: of a day, of all days, or of the tree of jobs below `root`."""

    scope: Scope
    name: LimitName
    maximum: int
    day: str | None = None
    agent: str | None = None
    schedule: str | None = None
    root: JobId | None = None
    outcome: OnLimit = OnLimit.SUSPEND
    """What happens to a job that meets it."""


class CountUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Count what a running job has used so far, and set aside what it may use next.

    Refused with `OVER_BUDGET` when one of `budgets` would be gone beyond, or, with nothing asked for, is
    used up. `total` and `last_seq` are as for `SettleExecution`.
    """

    job_id: JobId
    epoch: int
    at: datetime
    total: Totals
    last_seq: int
    asked: Used = Used()
    budgets: tuple[Budget, ...] = ()


def day_of(at: datetime) -> str:
    """The day of an instant, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def next_day(at: datetime) -> datetime:
    """When the next day begins, in UTC."""
    today = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)


def spending_id(day: str, agent: str, schedule: str) -> str:
    """The key of a day's row."""
    return f"{day}/{agent}/{schedule}"


def used_of(job: Job) -> Used:
    """What a job's row says that it has used."""
    return Used(spend=job.cost_microusd, turns=job.turns, tokens=job.tokens)


PER = 1_000_000
"""Prices are for this many tokens."""


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Micro-dollars for a million tokens of each kind."""

    input: MicroUsd = FREE
    output: MicroUsd = FREE
    cache_write: MicroUsd = FREE
    cache_read: MicroUsd = FREE

    def cost(self, usage: Usage) -> MicroUsd:
        """Return what `usage` costs, rounded up to a whole micro-dollar."""
        total = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_creation_input_tokens * self.cache_write
            + usage.cache_read_input_tokens * self.cache_read
        )
        return MicroUsd(-(-total // PER))


Prices = Mapping[str, ModelPrice]
"""Declared prices by model: `provider:name`, or the name alone for every provider."""


def declared_price(prices: Prices, model: str) -> ModelPrice | None:
    """Return the price declared for `model`, written as in an agent's `model` key."""
    return prices.get(model) or prices.get(model.partition(":")[2])
