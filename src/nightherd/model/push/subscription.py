"""PushSubscription: one device of one person that takes pushes. It ends with the login it was made in."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType
from urllib.parse import urlsplit

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.lifecycle import Lifecycle

PushId = NewType("PushId", str)

ID_PREFIX = "psh-"
TARGET_PREFIX = "push:"
"""Before the id: the name of a device among the targets of notifications. No declared one has a colon."""
ENDPOINT_LIMIT = 2_000
PUSH_TIMEOUT = timedelta(seconds=10)
"""How long a push service may take: they answer at once or not at all."""
MOST_DEVICES = 20
"""Active subscriptions of one person."""
PRINTABLE = re.compile(r"[\x21-\x7e]+")


class PushTopic(StrEnum):
    """What a device is told about."""

    INBOX = "inbox"
    """Something new waits for a person."""
    FAILURES = "failures"
    """A job or a run failed."""


class PushStatus(StrEnum):
    """Where a subscription stands."""

    ACTIVE = "active"
    ENDED = "ended"


class PushEnd(StrEnum):
    """Why a subscription ended."""

    REMOVED = "removed"
    """Its person removed it."""
    GONE = "gone"
    """The push service does not know it any more."""
    LOGGED_OUT = "logged_out"
    REVOKED = "revoked"
    """The token it was made with is not accepted any more, or its person is not let in any more."""
    REPLACED = "replaced"
    """Another person subscribed the same browser."""
    KEY_CHANGED = "key_changed"
    """It was made with another key than the fleet has now."""


PUSH_LIFECYCLE = Lifecycle(
    "push subscription",
    {PushStatus.ACTIVE: frozenset({PushStatus.ENDED}), PushStatus.ENDED: frozenset()},
)


class PushSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription's row."""

    id: PushId
    person: str
    status: PushStatus
    inbox: bool
    """Whether it is told about the inbox."""
    failures: bool
    """Whether it is told about failures."""
    label: str
    """What its person calls the device."""
    service: str
    """The host of the push service."""
    endpoint: str
    """Where pushes are sent: a secret, and empty once the subscription has ended."""
    p256dh: str
    """The public key of the browser; empty in the end."""
    auth: str
    """The authentication secret of the browser; empty in the end."""
    public_key: str
    """The fleet's key that it was made with."""
    token_hash: str | None = None
    """Hash of the token that its person showed, or logged in with."""
    session_id: str | None = None
    """The browser session it was made in."""
    is_proxied: bool = False
    """Whether a reverse proxy named its person."""
    created_at: datetime
    ended_at: datetime | None = None
    end_reason: PushEnd | None = None

    def __repr__(self) -> str:
        # The endpoint and the keys are secrets.
        return f"PushSubscription(id={self.id!r}, person={self.person!r}, status={self.status!r})"

    @property
    def is_active(self) -> bool:
        """Whether pushes are sent to it."""
        return self.status is PushStatus.ACTIVE

    @property
    def topics(self) -> tuple[PushTopic, ...]:
        """What it is told about."""
        chosen = ((PushTopic.INBOX, self.inbox), (PushTopic.FAILURES, self.failures))
        return tuple(topic for topic, is_wanted in chosen if is_wanted)

    @property
    def target(self) -> str:
        """Its name among the targets of notifications."""
        return f"{TARGET_PREFIX}{self.id}"


class AddPushSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """Subscribe a device. It is told what happens after `change`.

    The same endpoint of the same person stays the subscription that it is, with what is new. Of another person it ends.
    """

    subscription: PushSubscription
    change: int


class EndPushSubscriptions(msgspec.Struct, frozen=True, kw_only=True):
    """End the active subscriptions that match, and drop what is queued for them."""

    at: datetime
    reason: PushEnd
    ids: tuple[PushId, ...] = ()
    session_ids: tuple[str, ...] = ()
    token_hash: str | None = None
    logins_of: str | None = None
    """A person all of whose browser logins end."""

    def matches(self, one: PushSubscription) -> bool:
        """Whether it ends that subscription."""
        return (
            one.id in self.ids
            or (one.session_id is not None and one.session_id in self.session_ids)
            or (one.token_hash is not None and one.token_hash == self.token_hash)
            or (one.session_id is not None and one.person == self.logins_of)
        )


def is_device(target: str) -> bool:
    """Whether a target of notifications is a device."""
    return target.startswith(TARGET_PREFIX)


def service_of(endpoint: str) -> str:
    """Return the host of a push service, if pushes may be sent there, else `InvalidValueError`."""
    if len(endpoint) > ENDPOINT_LIMIT or PRINTABLE.fullmatch(endpoint) is None:
        raise InvalidValueError(f"endpoint is not a URL of at most {ENDPOINT_LIMIT} characters")
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidValueError("endpoint is not a URL") from error
    if parts.scheme.lower() != "https" or not host or port == 0:
        raise InvalidValueError("endpoint is not an https URL")
    if "@" in parts.netloc or parts.fragment:
        raise InvalidValueError("endpoint has a login or a fragment in it")
    return host
