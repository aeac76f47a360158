"""Limits as the engine keeps them."""

from __future__ import annotations

from nightherd.config.resolve_hooks import texts
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


def limit_hooks(limits: LimitsSchema | None, *, owner: str = "limits") -> tuple[Hook, ...]:
    """The agents that are submitted when something happens to a job, each known by its place."""
    if limits is None or limits.hooks is None:
        return ()
    return tuple(
        Hook(
            id=f"{owner}.hooks[{place}]",
            point=HookPoint.LIMITS,
            action=AgentSubmission(agent=hook.directive, inputs=texts(hook.inputs)),
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
