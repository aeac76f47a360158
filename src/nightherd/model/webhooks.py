"""What a fleet file says about being reached from outside: the API, and webhooks that make jobs."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.text import PLACE, render

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
BODY_LIMIT = 1024 * 1024
PAYLOAD = "payload"


class SignatureKind(StrEnum):
    """How a sender signs."""

    GITHUB = "github"
    STANDARD = "standard"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address that messages come in by, and what is made of them."""

    name: str
    agent: str | None
    """None where only workflows are started by it."""
    schedule: str | None = None
    """The agent's schedule that it fires, with that one's prompt, inputs, session and limits."""
    prompt: str | None = None
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    channel: str | None = None
    """Which conversation a message belongs to, for agents that keep one session for each."""
    signature: SignatureKind = SignatureKind.GITHUB
    secret_env: str | None = None
    events: frozenset[str] = frozenset()
    """Only these are acted on; none means all."""


class Webhooks(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in by webhooks, and where."""

    endpoints: Mapping[str, Endpoint] = msgspec.field(default_factory=dict)
    enabled: bool = False
    """Whether a port of their own is listened on."""
    host: str = "localhost"
    port: int = 8081
    body_limit: int = BODY_LIMIT
    replay_window: timedelta = timedelta(minutes=5)
    """How far a signed time may be from now."""


def check_public_url(text: str) -> str:
    """`text` without a last slash, if it is an http or https address that links can begin with; else `InvalidValueError`."""
    try:
        parts = urlsplit(text)
        is_plain = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and "@" not in parts.netloc
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        is_plain = False
    if not is_plain or text != text.strip() or not text.isascii() or not text.isprintable():
        raise InvalidValueError(
            f"{text!r} is not an address; write https://HOST or https://HOST/PATH"
        )
    return text.rstrip("/")


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


SECRET_PREFIX = "whsec_"  # noqa: S105 - how such secrets begin, not one of them
GITHUB_PREFIX = "sha256="
VERSION = "v1"


def standard_key(secret: str) -> bytes:
    """The key behind a secret: `whsec_` and base64 as the scheme has it, else the text itself."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def sign_standard(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of a message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(standard_key(secret), signed, "sha256")
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def is_standard(
    secrets: Iterable[str], signatures: str, message_id: str, timestamp: int, body: bytes
) -> bool:
    """Whether one of the signatures, which stand apart by spaces, was made with one of `secrets`."""
    given = [one.encode(errors="replace") for one in signatures.split(" ") if one]
    return any(
        hmac.compare_digest(one, sign_standard(secret, message_id, timestamp, body).encode())
        for secret in secrets
        for one in given
    )


def sign_github(secret: str, body: bytes) -> str:
    """The `X-Hub-Signature-256` of a body."""
    return GITHUB_PREFIX + hmac.digest(secret.encode(), body, "sha256").hex()


def is_github(secrets: Iterable[str], signature: str, body: bytes) -> bool:
    """Whether the signature was made with one of `secrets`."""
    given = signature.encode(errors="replace")
    return any(hmac.compare_digest(given, sign_github(secret, body).encode()) for secret in secrets)


class DeliveryOutcome(StrEnum):
    """What became of a delivery."""

    JOB = "job"
    RUN = "run"
    """It started runs of workflows, and made no job."""
    IGNORED = "ignored"
    """It was in order, and about something its endpoint does not act on."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery's row: it is there once, with exactly one outcome. Its body is not kept."""

    id: str
    """`ENDPOINT/DELIVERY`."""
    endpoint: str
    delivery_id: str
    """What the sender calls it; sent again, it is called the same."""
    received_at: datetime
    outcome: DeliveryOutcome
    event: str | None = None
    """What it is about, where the sender says so."""
    size: int = 0
    sha256: str = ""
    """Of the body as it came."""
    job_id: JobId | None = None
    reason: str | None = None
    """Why it was ignored, or started no run of some workflow."""
    run_ids: str = ""
    """The runs that it started, apart by spaces."""


def delivery_key(endpoint: str, delivery_id: str) -> str:
    """The key of an endpoint's delivery."""
    return f"{endpoint}/{delivery_id}"
