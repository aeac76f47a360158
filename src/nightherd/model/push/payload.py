"""What a push says, and how the push service is to treat it. Nothing but a title and where to look leaves the house."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from nightherd.model.inbox.item import InboxItem
from nightherd.model.notifications.notification import Notification

TEST = "test"
TEST_TITLE = "Test of nightherd"
TEST_TTL = timedelta(minutes=5)
TOPIC_BYTES = 24
"""Of a hash: as text the 32 characters that a topic may have."""
SHORTEST_TTL = timedelta(minutes=1)


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """One push: what the browser is given, and what the push service is told."""

    payload: str
    topic: str | None
    """A later push of the same topic replaces one that was not delivered yet."""
    ttl: timedelta
    """How long the push service keeps it for a device that is not there."""
    is_urgent: bool
    """Whether a device that saves power is woken for it."""


def push_of(one: Notification, item: InboxItem | None, now: datetime) -> Push:
    """Return what a device is sent for a notification; `item` is the one that it is about."""
    path = path_of(one)
    until = one.give_up_at
    if item is not None and item.expires_at is not None:
        until = min(until, item.expires_at)
    return Push(
        payload=_payload(one.event.value, one.subject, one.item_id, path),
        topic=topic_of(path) if path else None,
        ttl=max(until - now, SHORTEST_TTL),
        is_urgent=one.item_id is not None,
    )


def trial_push() -> Push:
    """Return what a device is sent when its person tries it."""
    return Push(
        payload=_payload(TEST, TEST_TITLE, None, ""), topic=None, ttl=TEST_TTL, is_urgent=False
    )


def path_of(one: Notification) -> str:
    """Return the place in the dashboard where the notification leads, without a first slash."""
    if one.item_id is not None:
        return f"inbox/{one.item_id}"
    if one.job_id is not None:
        return f"jobs/{one.job_id}"
    return "" if one.run_id is None else f"runs/{one.run_id}"


def topic_of(path: str) -> str:
    """Return the topic of all pushes about one place: a hash, because the push service reads it."""
    return urlsafe_b64encode(sha256(path.encode()).digest()[:TOPIC_BYTES]).decode()


def _payload(kind: str, title: str, item: str | None, path: str) -> str:
    fields = {"kind": kind, "title": title, "item": item, "path": path}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
