"""What a fleet file says about being reached from outside: the API, and webhooks that make jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.template import PLACE, render

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
BODY_LIMIT = 1024 * 1024
PAYLOAD = "payload"


class SignatureKind(StrEnum):
    """How a sender signs."""

    GITHUB = "github"
    STANDARD = "standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address that messages come in by, and what is made of them."""

    name: str
    agent: str
    schedule: str | None = None
    """The agent's schedule that it fires, with that one's prompt, inputs, session and limits."""
    prompt: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    channel: str | None = None
    """Which conversation a message belongs to, for agents that keep one session for each."""
    signature: SignatureKind = SignatureKind.GITHUB
    secret_env: str | None = None
    events: frozenset[str] = frozenset()
    """Only these are acted on; none means all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """What comes in by webhooks, and where."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    enabled: bool = False
    """Whether a port of their own is listened on."""
    host: str = "localhost"
    port: int = 8081
    body_limit: int = BODY_LIMIT
    replay_window: timedelta = timedelta(minutes=5)
    """How far a signed time may be from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Where the API is served besides its socket."""

    enabled: bool = False
    host: str = "localhost"
    port: int = 3232
    token_env: str = "NIGHTHERD_WEB_TOKEN"  # noqa: S105 - the name of a variable
    hosts: frozenset[str] = frozenset()
    """Names by which it may be addressed, besides its own."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def wants_event(endpoint: Endpoint, event: str | None, payload: Any) -> bool:
    """Whether the endpoint acts on this: `issues` is every action of issues, `issues.opened` one of them."""
    if not endpoint.events:
        return True
    action = payload.get("action") if isinstance(payload, Mapping) else None
    return event in endpoint.events or f"{event}.{action}" in endpoint.events


def fill_in(template: str, payload: Any, values: Mapping[str, str]) -> str:
    """`template` with `${payload.a.b}` from the payload and the rest from `values`.

    `InvalidValueError` for a place that the payload does not have.
    """
    names = dict.fromkeys(match[1] for match in PLACE.finditer(template))
    found = {
        name: _text(name, payload)
        for name in names
        if name == PAYLOAD or name.startswith(f"{PAYLOAD}.")
    }
    return render(template, {**values, **found})


def fill_in_value(value: Any, payload: Any) -> Any:
    """An input with the payload filled into its texts, at any depth; everything else as it is."""
    if isinstance(value, str):
        return fill_in(value, payload, {})
    if isinstance(value, Mapping):
        return {key: fill_in_value(inner, payload) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_in_value(inner, payload) for inner in value]
    return value


def _text(name: str, payload: Any) -> str:
    value = payload
    for step in name.split(".")[1:]:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise InvalidValueError(f"${{{name}}} is not in the payload")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
