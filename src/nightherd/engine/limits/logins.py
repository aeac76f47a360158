"""Logins of agents: which limits stop their jobs, and the limit that a job has hit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import PRICE_UNKNOWN, SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.login import LoginLimit, limit_id, limits_that_stop, login_of, stopping

RATE_LIMITED = "rate_limited"


def stopped_by(agent: Agent, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the limits that stop a job of the agent from starting."""
    return limits_that_stop(agent, login_of(agent, environment))


def with_login_limit(stop: Suspension, agent: Agent, context: FleetContext) -> Suspension:
    """Return the suspension with the limit of the agent's login, if the provider named when it resets."""
    login = login_of(agent, context.environment)
    is_limit = stop.reason is SuspendReason.RATE_LIMIT and stop.code == RATE_LIMITED
    if login is None or not is_limit or not stop.is_named or stop.until is None:
        return stop
    return replace(stop, login_limit=limit_id(login, stop.limit))


def limit_now(agent: Agent, context: FleetContext) -> LoginLimit | None:
    """Return the limit that stops jobs of the agent at this moment."""
    ids, at = stopped_by(agent, context.environment), context.clock.now()
    found = context.reader.list_login_limits(at) if ids else ()
    return stopping((one for one in found if one.id in ids), at)


def free_agents(
    agents: Collection[str],
    ids: Mapping[str, tuple[str, ...]],
    limits: Collection[LoginLimit],
    at: datetime,
) -> Collection[str]:
    """Return those of `agents` whose jobs no limit stops; `ids` are the limits that could stop each."""
    active = {limit.id for limit in limits if limit.next_start_at > at}
    if not active:
        return agents
    return [name for name in agents if active.isdisjoint(ids.get(name, ()))]


def price_unknown(agent: Agent) -> Suspension:
    """Return why a job of `agent` waits whose model has no price."""
    return Suspension(reason=SuspendReason.LIMIT, code=PRICE_UNKNOWN, message=unpriced_text(agent))


def uncounted_text(agent: Agent) -> str:
    """Say why a limit of dollars cannot be kept for an agent whose runtime does not count them."""
    return (
        f"runtime {agent.runtime.name!r} does not report what answers cost, "
        "so a limit of dollars cannot be kept"
    )


def unpriced_text(agent: Agent) -> str:
    """Say which model has no price, and what to do."""
    models = " or ".join(repr(one) for one in (agent.model, agent.fallback_model) if one)
    return (
        f"the price of {models} is unknown, so its limit of dollars cannot be kept: "
        "declare it under 'prices' in the fleet file (0 for a local model)"
    )
