"""Limits as the engine keeps them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from nightherd.config.resolve_hooks import json_inputs
from nightherd.config.schema.limits import DayLimits as DayLimitsSchema
from nightherd.config.schema.limits import Limits as LimitsSchema
from nightherd.config.schema.limits import Outcomes
from nightherd.model.hook import AgentSubmission, Hook, HookPoint
from nightherd.model.limits import (
    NO_DAY_LIMITS,
    NO_LIMITS,
    DayLimits,
    LimitName,
    Limits,
    OnLimit,
)

Amount = TypeVar("Amount", int, timedelta)
OF_ONE_JOB = frozenset({LimitName.SPAWNS, LimitName.DEPTH, LimitName.DURATION})
"""What does not add up over jobs: the fleet's limits of these are for each job of it."""


def resolve_limits(limits: LimitsSchema | None) -> Limits:
    """What a `limits` section says."""
    if limits is None:
        return NO_LIMITS
    return Limits(
        spend=limits.spend,
        turns=limits.turns,
        tokens=limits.tokens,
        spawns=limits.spawns,
        depth=limits.depth,
        duration=limits.duration,
        per_day=_day(limits.per_day),
        outcomes=_outcomes(limits.on_reached),
    )


def within_fleet(own: Limits, fleet: Limits) -> Limits:
    """No job of the fleet has more levels, children or time than the fleet says; who says less has less."""
    outcomes = {name: word for name, word in fleet.outcomes.items() if name in OF_ONE_JOB}
    return replace(
        own,
        spawns=lower(own.spawns, fleet.spawns),
        depth=lower(own.depth, fleet.depth),
        duration=lower(own.duration, fleet.duration),
        outcomes={**outcomes, **own.outcomes},
    )


def within_schedule(own: Limits, fleet: Limits) -> Limits:
    """The same for what a schedule says: what it leaves to the agent is within the fleet's already."""
    return replace(
        own,
        spawns=None if own.spawns is None else lower(own.spawns, fleet.spawns),
        depth=None if own.depth is None else lower(own.depth, fleet.depth),
        duration=None if own.duration is None else lower(own.duration, fleet.duration),
    )


def lower(own: Amount | None, bound: Amount | None) -> Amount | None:
    """The lower of both; None is no limit."""
    if own is None or bound is None:
        return bound if own is None else own
    return min(own, bound)


def limit_hooks(limits: LimitsSchema | None, *, owner: str = "limits") -> tuple[Hook, ...]:
    """The agents that are submitted when something happens to a job, each known by its place."""
    if limits is None or limits.hooks is None:
        return ()
    return tuple(
        Hook(
            id=f"{owner}.hooks[{place}]",
            point=HookPoint.LIMITS,
            action=AgentSubmission(agent=hook.directive, inputs=json_inputs(hook.inputs)),
            on=frozenset({hook.event}),
        )
        for place, hook in enumerate(limits.hooks)
    )


def _day(limits: DayLimitsSchema | None) -> DayLimits:
    if limits is None:
        return NO_DAY_LIMITS
    return DayLimits(spend=limits.spend, turns=limits.turns, tokens=limits.tokens)


def _outcomes(outcomes: Outcomes | None) -> dict[LimitName, OnLimit]:
    if outcomes is None:
        return {}
    words = {
        LimitName.SPEND: outcomes.spend,
        LimitName.TURNS: outcomes.turns,
        LimitName.TOKENS: outcomes.tokens,
        LimitName.SPAWNS: outcomes.spawns,
        LimitName.DEPTH: outcomes.depth,
        LimitName.DURATION: outcomes.duration,
    }
    return {name: OnLimit(word) for name, word in words.items() if word is not None}
