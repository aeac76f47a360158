"""Admission: an agent whose protection cannot be given gets no job, whatever asks for one.

Every way to make or continue a job comes through here: commands, the API, the library, schedules, webhooks,
hooks and other jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.engine.budgets import WITHIN, daily_limits, days_above, tree_budgets
from nightherd.engine.limits import job_limits
from nightherd.engine.pricing import unpriced_text
from nightherd.engine.workshop import Workshop
from nightherd.errors import AgentBlockedError
from nightherd.model.agent import Agent, RuntimeName
from nightherd.model.limits import LimitName
from nightherd.model.overrides import overridden
from nightherd.model.price import declared_price
from nightherd.model.problem import Place, Problem
from nightherd.model.scheduled import for_schedule


def check_admission(
    agent: Agent, schedule: str | None, overrides: Mapping[str, Any], workshop: Workshop
) -> None:
    """Raise `AgentBlockedError` when a job of `agent` may not start; `overrides` are the job's own settings."""
    if agent.blocked_by:
        raise AgentBlockedError(agent.name, agent.blocked_by)
    if agent.runtime is not RuntimeName.NATIVE or agent.script is not None:
        return  # what a script costs it says itself, and Claude reports its own costs
    effective = overridden(for_schedule(agent, schedule), overrides)
    if _has_unknown_price(effective, workshop) and _limits_spending(
        effective, schedule, overrides, workshop
    ):
        message = unpriced_text(effective)
        place = effective.model_place or Place(file="", line=1, column=1)
        problem = Problem(place=place, message=message, path=f"agents.{agent.name}.model")
        raise AgentBlockedError(agent.name, (problem,))


def _has_unknown_price(agent: Agent, workshop: Workshop) -> bool:
    """Whether one of the agent's models has neither a declared nor a published price."""
    return any(
        declared_price(workshop.prices, model) is None and not workshop.has_price(model)
        for model in (agent.model, agent.fallback_model)
        if model is not None
    )


def _limits_spending(
    agent: Agent, schedule: str | None, overrides: Mapping[str, Any], workshop: Workshop
) -> bool:
    """Whether a limit of dollars applies: the job's own, a parent's, the fleet's, or one of a day."""
    if job_limits(agent, overrides).spend is not None or workshop.budget.spend is not None:
        return True
    within = overrides.get(WITHIN)
    if any(one.name is LimitName.SPEND for one in tree_budgets(within, workshop)):
        return True
    days = [
        *daily_limits(agent, schedule, workshop.budget),
        *days_above(within, workshop),
    ]
    return any(one.limits.spend is not None for one in days)
