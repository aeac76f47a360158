"""Claimable: the agents whose jobs a worker takes, and what claiming needs to know about each."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.limits.logins import stopped_by
from nightherd.model.agents.agent import Agent, Fleet


def all_agents(fleet: Fleet, context: WorkerContext) -> dict[str, Agent]:
    """Return the agents whose jobs a worker takes: those of the fleet, and the one that runs commands of workflows."""
    commands = context.commands_agent
    return {**fleet.agents} if commands is None else {**fleet.agents, commands.name: commands}


def runnable(agents: Mapping[str, Agent], context: WorkerContext) -> dict[str, int]:
    """Return the agents whose jobs can run here, each with how many of them at once."""
    return {
        agent.name: agent.max_concurrent
        for agent in agents.values()
        if context.can_run(agent.runtime.name) and not agent.blocked_by
    }


def repos_of(fleet: Fleet) -> dict[str, str]:
    """Return the repositories of the agents that have one."""
    return {agent.name: agent.repo for agent in fleet.agents.values() if agent.repo is not None}


def logins_of(fleet: Fleet, context: WorkerContext) -> dict[str, tuple[str, ...]]:
    """Return, by agent, the limits of logins because of which its jobs may not start."""
    environment = context.environment
    ids = {agent.name: stopped_by(agent, environment) for agent in fleet.agents.values()}
    return {name: found for name, found in ids.items() if found}
