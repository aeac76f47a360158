"""Rate limits of logins as every surface shows them, and which agents they stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nightherd.model.limits.login import limits_that_stop, stopping
from nightherd.views.jobs import timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from nightherd.model.agents.agent import Agent
    from nightherd.model.limits.login import LoginLimit
    from nightherd.ports import StateReader


def current_limits(reader: StateReader, now: datetime) -> Sequence[LoginLimit]:
    """Return the limits that last now, by id."""
    return [one for one in reader.list_login_limits(now) if one.until > now]


def limits_of_agents(
    reader: StateReader, agents: Iterable[Agent], now: datetime
) -> Mapping[str, LoginLimit]:
    """Return the limit that stops each agent's jobs now, by agent; an agent's login is that of its latest job."""
    current = {one.id: one for one in current_limits(reader, now)}
    if not current:
        return {}
    logins = {state.name: state.login for state in reader.list_agents()}
    found = {
        agent.name: stopping(map(current.get, limits_that_stop(agent, logins.get(agent.name))), now)
        for agent in agents
    }
    return {name: limit for name, limit in found.items() if limit is not None}


def limit_row(limit: LoginLimit, stopped: Mapping[str, LoginLimit]) -> dict[str, Any]:
    """Show a limit with the agents that it stops."""
    return {
        "login": limit.id,
        "limit": limit.name,
        "until": timestamp(limit.until),
        "job_id": limit.job_id,
        "agents": sorted(name for name, one in stopped.items() if one.id == limit.id),
    }
