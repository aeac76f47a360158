"""Secret: a value that must not be written anywhere, and how texts are masked before they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from nightherd.model.agent import Agent, Fleet
from nightherd.model.event import Event, ToolResultEvent
from nightherd.model.hook import HttpRequest
from nightherd.model.secret_cuts import mask_at_cuts
from nightherd.model.secret_values import Exists, is_secret_name, secret_values

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
            masked = self.pattern.sub(lambda found: f"[secret:{self.names[found[0]]}]", value)
            return mask_at_cuts(masked, self.names) if "..." in masked else masked
        if isinstance(value, Mapping):
            return {self.mask(key): self.mask(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask(item) for item in value]
        return value

    def mask_stream(self, pieces: Iterable[str]) -> Iterator[str]:
        """The text that `pieces` make, masked, in bounded memory; a secret may lie across pieces."""
        if self.pattern is None:
            yield from pieces
            return
        longest, rest = max(map(len, self.names)), ""
        for piece in pieces:
            text = rest + piece
            # Before this place every secret that begins is there to its end.
            safe, done = max(len(text) - longest + 1, 0), 0
            for found in self.pattern.finditer(text):
                if found.start() >= safe:
                    break
                yield text[done : found.start()] + f"[secret:{self.names[found[0]]}]"
                done = found.end()
            yield text[done:safe]
            rest = text[max(done, safe) :]
        yield str(self.mask(rest))

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
        output = event.full_output if isinstance(event, ToolResultEvent) else None
        if output is not None and output.text is not None:
            changed["full_output"] = msgspec.structs.replace(output, text=self.mask(output.text))
        return msgspec.structs.replace(event, **changed) if changed else event


NO_SECRETS = Secrets({}, None)


def _never(path: str) -> bool:
    """Nothing is known of any path."""
    return False


def find_secrets(
    environment: Mapping[str, str], *, named: Collection[str] = (), exists: Exists = _never
) -> Secrets:
    """The secrets of an environment; `named` are variables that the fleet file calls secret."""
    return knowing(secret_values(environment, named=named, exists=exists))


def knowing(names: Mapping[str, str]) -> Secrets:
    """The secrets of which these are the names by their values."""
    if not names:
        return NO_SECRETS
    longest_first = sorted(names, key=len, reverse=True)
    return Secrets(names, re.compile("|".join(re.escape(value) for value in longest_first)))


def secrets_of(
    fleet: Fleet | None, environment: Mapping[str, str], *, exists: Exists = _never
) -> Secrets:
    """The secrets of an environment, of what the fleet adds to it, and those that its file holds or names.

    `exists` says whether a path is there: paths that are stay readable.
    """
    if fleet is None:
        return find_secrets(environment, exists=exists)
    return secrets_of_agents(
        fleet.agents.values(),
        {**fleet.environment, **environment},
        named=fleet.secret_variables,
        exists=exists,
    )


def secrets_of_agents(
    agents: Iterable[Agent],
    environment: Mapping[str, str],
    *,
    named: Collection[str] = (),
    exists: Exists = _never,
) -> Secrets:
    """The secrets of an environment, and those that MCP servers and hooks of `agents` are told."""
    found: dict[str, str] = {}
    for agent in agents:
        for told in _told_by(agent):
            found |= secret_values(told, exists=exists)
    return knowing({**found, **secret_values(environment, named=named, exists=exists)})


def _told_by(agent: Agent) -> Iterator[Mapping[str, str]]:
    """What the agent's servers and hooks are told, by name; addresses and arguments under the server's or hook's."""
    for server in agent.mcp_servers:
        yield server.env
        yield server.headers
        yield from ({server.name: text} for text in (server.url, *server.args) if text)
        for option, value in pairwise(server.args):
            if is_secret_name(option) and not value.startswith("-"):
                yield {option: value}
    for hook in agent.hooks:
        if isinstance(hook.action, HttpRequest):
            yield hook.action.headers
            yield {hook.id: hook.action.url}
