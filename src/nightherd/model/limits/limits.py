"""Limits: what a job may use, and what happens when it would use more.

Everything is whole numbers: micro-dollars, turns, tokens, jobs, levels, milliseconds. A limit is met when
what has been used goes beyond it, or when it is used up and there is more to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.units import (
    ONE_MS,
    MicroUsd,
    format_usd,
    parse_duration,
    parse_usd,
    rough_duration,
    to_usd,
)

NameT = TypeVar("NameT", bound=str)

MICRO = 1_000_000
BOUNDLESS = 10**15
"""A maximum that is none: of a job that continues without one of its limits."""


class LimitName(StrEnum):
    """What is limited."""

    SPEND = "spend"
    TURNS = "turns"
    TOKENS = "tokens"
    SPAWNS = "spawns"
    DEPTH = "depth"
    DURATION = "duration"

    @property
    def code(self) -> str:
        """The code of a suspension by this limit."""
        return f"{self.value}_exceeded"


class OnLimit(StrEnum):
    """What happens to a job that meets a limit."""

    SUSPEND = "suspend"
    """The job waits until a person raises the limit."""
    FAIL = "fail"
    """It fails."""
    HOOK = "hook"
    """It waits, and the agents named by `limits.hooks` decide."""


class Scope(StrEnum):
    """Whose limit it is."""

    JOB = "job"
    SCHEDULE = "schedule"
    AGENT = "agent"
    FLEET = "fleet"
    PARENT = "parent"


class DayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What may be used in one day (UTC), all jobs together; None for no limit."""

    spend: MicroUsd | None = None
    turns: int | None = None
    tokens: int | None = None

    def maximum(self, name: LimitName) -> int | None:
        """The limit of that name."""
        return {
            LimitName.SPEND: self.spend,
            LimitName.TURNS: self.turns,
            LimitName.TOKENS: self.tokens,
        }.get(name)


NO_DAY_LIMITS = DayLimits()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What may be used, children of a job included; None for no limit."""

    spend: MicroUsd | None = None
    turns: int | None = None
    tokens: int | None = None
    spawns: int | None = None
    depth: int | None = None
    duration: timedelta | None = None
    per_day: DayLimits = NO_DAY_LIMITS
    outcomes: Mapping[LimitName, OnLimit] = msgspec.field(default_factory=dict)

    def maximum(self, name: LimitName) -> int | None:
        """The limit of that name, a duration in milliseconds."""
        if name is LimitName.DURATION:
            return None if self.duration is None else self.duration // ONE_MS
        value: int | None = getattr(self, name)
        return value

    def outcome(self, name: LimitName) -> OnLimit:
        """What happens when it is met."""
        return self.outcomes.get(name, OnLimit.SUSPEND)

    @property
    def is_empty(self) -> bool:
        """Whether there are no limits, for one job and for one day."""
        limits = (self.spend, self.turns, self.tokens, self.spawns, self.depth, self.duration)
        return limits.count(None) == len(limits) and self.per_day == NO_DAY_LIMITS

    def over(self, below: Limits) -> Limits:
        """These limits where they say something, those `below` where they do not. Days are not handed on."""
        outcomes = {**below.outcomes, **self.outcomes}
        chosen = {
            name.value: getattr(below, name.value)
            if getattr(self, name.value) is None
            else getattr(self, name.value)
            for name in LimitName
        }
        return replace(self, **chosen, outcomes=outcomes)


NO_LIMITS = Limits()


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What has been used so far."""

    spend: int = 0
    turns: int = 0
    tokens: int = 0
    spawns: int = 0
    depth: int = 0
    duration: int = 0
    """Milliseconds."""

    def amount(self, name: LimitName) -> int:
        """How much of it."""
        value: int = getattr(self, name.value)
        return value

    def __add__(self, other: Used) -> Used:
        """Both together; levels do not add up."""
        return Used(
            spend=self.spend + other.spend,
            turns=self.turns + other.turns,
            tokens=self.tokens + other.tokens,
            spawns=self.spawns + other.spawns,
            depth=max(self.depth, other.depth),
            duration=self.duration + other.duration,
        )


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was met: whose, how much there is of it, and what the limit is."""

    name: LimitName
    scope: Scope
    current: int
    maximum: int
    outcome: OnLimit = OnLimit.SUSPEND
    is_day: bool = False
    is_ahead: bool = False
    """Whether `current` is what the next turn could bring it to, rather than what has been used."""
    owner: str | None = None
    """Whose limit it is, when that is something above the job: the id of a job, or an agent or a schedule."""
    below: JobId | None = None
    """The job below that met it, if one did."""

    @property
    def code(self) -> str:
        """The code of the suspension."""
        return self.name.code


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A turn may not begin: less is left than it asks for."""

    stop: Suspension
    """Why the job waits, unless the turn asks for less."""
    name: LimitName
    left: int = 0
    """What is left of the limit `name`; a turn that asks for no more may begin as far as that limit goes."""


COUNTED = (LimitName.SPEND, LimitName.TURNS, LimitName.TOKENS)
"""What adds up from turn to turn and over jobs."""


Bounds = tuple[tuple[LimitName, int, OnLimit], ...]
"""Limits one by one: which, its maximum, and what happens when it is met."""


def bounds(limits: Limits) -> Bounds:
    """Those of the limits that what a job uses can meet from turn to turn."""
    return tuple(
        (name, maximum, limits.outcome(name))
        for name in (*COUNTED, LimitName.DURATION)
        if (maximum := limits.maximum(name)) is not None
    )


def decide(used: Used, limits: Bounds, *, has_more: bool, scope: Scope = Scope.JOB) -> Hit | None:
    """The limit that `used` has met, if any: gone beyond, or used up while there `has_more` to do."""
    for name, maximum, outcome in limits:
        current = used.amount(name)
        if is_met(current, maximum, has_more=has_more):
            return Hit(name=name, scope=scope, current=current, maximum=maximum, outcome=outcome)
    return None


def is_met(current: int, maximum: int, *, has_more: bool) -> bool:
    """Whether a limit is met by so much."""
    return current >= maximum if has_more else current > maximum


def shown(name: LimitName, amount: int) -> str:
    """An amount for people."""
    match name:
        case LimitName.SPEND:
            return format_usd(MicroUsd(amount))
        case LimitName.DURATION:
            return rough_duration(timedelta(milliseconds=amount))
        case _:
            return f"{amount:,}"


def number(name: LimitName, amount: int) -> float | int:
    """An amount as documents have it: dollars, seconds, or a count."""
    match name:
        case LimitName.SPEND:
            return to_usd(MicroUsd(amount))
        case LimitName.DURATION:
            return amount / 1_000
        case _:
            return amount


def amount_of(name: LimitName, document: float) -> int:
    """The same the other way round: the amount that a document says."""
    match name:
        case LimitName.SPEND:
            return round(document * MICRO)
        case LimitName.DURATION:
            return round(document * 1_000)
        case _:
            return round(document)


OWNERS = {
    Scope.JOB: "the job's limit",
    Scope.SCHEDULE: "the schedule's limit",
    Scope.AGENT: "the agent's limit",
    Scope.FLEET: "the fleet's limit",
    Scope.PARENT: "what its parent has left",
}


def suspension_of(hit: Hit) -> Suspension:
    """Why a job that meets the limit waits."""
    day = " a day" if hit.is_day else ""
    used, maximum = shown(hit.name, hit.current), shown(hit.name, hit.maximum)
    whose = f"{OWNERS[hit.scope]} of {maximum}{day}"
    if hit.owner is not None:
        whose = f"the limit of {maximum}{day} of {hit.owner}, above it"
    over = hit.current - hit.maximum
    beyond = f", {shown(hit.name, over)} over it" if over > 0 else ""
    if hit.is_ahead:
        turn = "the next turn" if hit.below is None else f"the next turn of {hit.below}"
        used, beyond = f"{turn} could bring it to {used}", ""
    return Suspension(
        reason=SuspendReason.LIMIT if hit.scope is Scope.JOB else SuspendReason.BUDGET,
        code=hit.code,
        message=f"{hit.name.value}: {used}, of {whose}{beyond}",
        current_value=float(number(hit.name, hit.current)),
        current_max=float(number(hit.name, hit.maximum)),
        owner=hit.owner,
        is_ahead=hit.is_ahead,
        is_below=hit.below is not None,
    )


def parse_limit(text: str) -> tuple[LimitName, int]:
    """`spend=0.50`, `turns=20`, `duration=1h`: the limit and its maximum as a job keeps it, or `InvalidValueError`."""
    name_text, equals, value = text.partition("=")
    try:
        name = LimitName(name_text.strip())
    except ValueError:
        known = ", ".join(LimitName)
        raise InvalidValueError(f"{text!r}: there are the limits {known}") from None
    if not equals or not value.strip():
        raise InvalidValueError(f"{text!r}: write {name.value}=MAXIMUM")
    return name, read_maximum(name, value.strip())


def read_maximum(name: LimitName, value: str) -> int:
    """A maximum as people write it, in whole numbers."""
    if name is LimitName.SPEND:
        return parse_usd(value)
    if name is LimitName.DURATION:
        return parse_duration(value) // ONE_MS
    try:
        count = int(value)
    except ValueError:
        raise InvalidValueError(f"{value!r} is not a whole number of {name.value}") from None
    if count < 0:
        raise InvalidValueError(f"{value!r} is negative; limits are zero or more")
    if count > BOUNDLESS:
        raise InvalidValueError(f"{value!r} is more than is ever counted")
    return count


def kept_limits(given: Mapping[NameT, str]) -> dict[str, int]:
    """Limits as people write them, as a job keeps them: whole numbers, a duration in milliseconds.

    `InvalidValueError` for a name or a maximum that is none.
    """
    kept: dict[str, int] = {}
    for name, text in given.items():
        if name not in tuple(LimitName):
            known = ", ".join(LimitName)
            raise InvalidValueError(f"there is no limit {name!r}; the limits are {known}")
        kept[str(name)] = read_maximum(LimitName(name), text.strip())
    return kept


def limits_document(limits: Limits) -> dict[str, Any]:
    """The job's limits as they are kept with a job: only what is limited, in whole numbers."""
    found: dict[str, Any] = {}
    for name in LimitName:
        maximum = limits.maximum(name)
        if maximum is not None and maximum < BOUNDLESS:
            found[name.value] = maximum
    return found


def limits_of_document(kept: Mapping[str, Any], outcomes: Mapping[LimitName, OnLimit]) -> Limits:
    """Limits as they were kept. What was raised by hand is met as everything else: by waiting."""
    values: dict[str, Any] = {
        name.value: int(kept[name.value]) for name in LimitName if kept.get(name.value) is not None
    }
    if "duration" in values:
        values["duration"] = timedelta(milliseconds=values["duration"])
    return Limits(**values, outcomes=outcomes)
