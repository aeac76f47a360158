"""Secret: a value that must not be written anywhere, and how texts are masked before they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nightherd.model.agent import Agent, Fleet
from nightherd.model.event import Event

NAME_OF_SECRET = re.compile(
    r"key|token|secret|passw(or)?d|passphrase|credential|auth|dsn|cookie", re.IGNORECASE
)
SHORTEST = 8
"""Values shorter than this are not masked: they would blot out ordinary words."""

MASKED_FIELDS = frozenset(
    {"content", "thinking", "input", "result", "error", "message", "stack", "extra"}
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secret values known, and the pattern that finds any of them."""

    names: Mapping[str, str]
    """Name by value."""
    pattern: re.Pattern[str] | None

    def mask(self, value: Any) -> Any:
        """`value` with every secret in its texts replaced by `[secret:NAME]`; containers are walked."""
        if self.pattern is None:
            return value
        if isinstance(value, str):
            return self.pattern.sub(lambda found: f"[secret:{self.names[found[0]]}]", value)
        if isinstance(value, Mapping):
            return {self.mask(key): self.mask(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask(item) for item in value]
        return value

    def joined(self, other: Secrets) -> Secrets:
        """Every secret that either knows."""
        return knowing({**self.names, **other.names})

    def mask_event(self, event: Event) -> Event:
        """`event` with every secret in it masked."""
        if self.pattern is None:
            return event
        changed = {
            name: masked
            for name in MASKED_FIELDS.intersection(event.__struct_fields__)
            if (masked := self.mask(found := getattr(event, name))) != found
        }
        return msgspec.structs.replace(event, **changed) if changed else event


def find_secrets(environment: Mapping[str, str]) -> Secrets:
    """The secrets of an environment: long enough values of variables whose name says so."""
    names = {
        value: name
        for name, value in sorted(environment.items())
        if len(value) >= SHORTEST and NAME_OF_SECRET.search(name) and not value.startswith("/")
    }
    return knowing(names)


def knowing(names: Mapping[str, str]) -> Secrets:
    """The secrets of which these are the names by their values."""
    if not names:
        return Secrets({}, None)
    longest_first = sorted(names, key=len, reverse=True)
    return Secrets(names, re.compile("|".join(re.escape(value) for value in longest_first)))


def secrets_of(fleet: Fleet | None, environment: Mapping[str, str]) -> Secrets:
    """The secrets of an environment, of what the fleet adds to it, and those that its MCP servers are told."""
    if fleet is None:
        return find_secrets(environment)
    return secrets_of_agents(fleet.agents.values(), {**fleet.environment, **environment})


def secrets_of_agents(agents: Iterable[Agent], environment: Mapping[str, str]) -> Secrets:
    """The secrets of an environment, and those that the MCP servers of `agents` are told."""
    told: dict[str, str] = {}
    for agent in agents:
        for server in agent.mcp_servers:
            told |= {**server.env, **server.headers}
    return find_secrets({**told, **environment})
