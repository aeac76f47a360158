"""Credentials of bots: the variables that hold them, which no agent is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # only a name: agents have bots
    from nightherd.model.agents.agent import Agent


def bot_variables(agents: Iterable[Agent]) -> frozenset[str]:
    """Return the variables that the agents' bots log in with."""
    return frozenset(name for agent in agents for bot in agent.bots for name in bot.variables)


def without_credentials(
    environment: Mapping[str, str], agents: Iterable[Agent]
) -> Mapping[str, str]:
    """Return the environment without what the agents' bots log in with: whoever has a token can speak as the bot."""
    hidden = bot_variables(agents)
    if not hidden:
        return environment
    return {name: value for name, value in environment.items() if name not in hidden}
