"""Pricing: a limit of dollars is kept only for models whose price is known; other jobs do not start."""

from __future__ import annotations

from nightherd.model.agent import Agent
from nightherd.model.job import PRICE_UNKNOWN, SuspendReason
from nightherd.model.suspension import Suspension


def price_unknown(agent: Agent) -> Suspension:
    """Return why a job of `agent` waits whose model has no price."""
    return Suspension(reason=SuspendReason.LIMIT, code=PRICE_UNKNOWN, message=unpriced_text(agent))


def unpriced_text(agent: Agent) -> str:
    """Say which model has no price, and what to do."""
    models = " or ".join(repr(one) for one in (agent.model, agent.fallback_model) if one)
    return (
        f"the price of {models} is unknown, so its limit of dollars cannot be kept: "
        "declare it under 'prices' in the fleet file (0 for a local model)"
    )
