"""Notification: one message to one target, from the event to its delivery."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, NewType

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.inbox.item import ItemId
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.notifications.target import NotifyEvent

NotificationId = NewType("NotificationId", str)

SUBJECT_LIMIT = 200
ERROR_LIMIT = 300
LEDGER = "ledger"
"""The key of the cursor of those who know the whole fleet."""


class NotificationStatus(StrEnum):
    """Where a notification stands."""

    PENDING = "pending"
    SENDING = "sending"
    """A process sends it now; when its lease passes, another one may."""
    SENT = "sent"
    FAILED = "failed"
    """Given up: refused for good, or its time has passed."""
    DROPPED = "dropped"
    """Nobody needs it any more: what it asks was answered, or its target was removed."""


NOTIFICATION_LIFECYCLE = Lifecycle(
    "notification",
    {
        NotificationStatus.PENDING: frozenset(
            {NotificationStatus.SENDING, NotificationStatus.FAILED, NotificationStatus.DROPPED}
        ),
        NotificationStatus.SENDING: frozenset(
            {
                NotificationStatus.PENDING,
                # A process whose lease has passed is followed by another.
                NotificationStatus.SENDING,
                NotificationStatus.SENT,
                NotificationStatus.FAILED,
                NotificationStatus.DROPPED,
            }
        ),
        NotificationStatus.SENT: frozenset(),
        NotificationStatus.FAILED: frozenset(),
        NotificationStatus.DROPPED: frozenset(),
    },
)


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification's row: everything a list shows, nothing unbounded and nothing secret."""

    id: NotificationId
    target: str
    event: NotifyEvent
    status: NotificationStatus
    created_at: datetime
    due_at: datetime
    """Not sent before; the order within a target is by this, then by number."""
    give_up_at: datetime
    dedupe_key: str
    """There is one notification for each key; the id is made from it."""
    subject: str
    job_id: JobId | None = None
    item_id: ItemId | None = None
    """The inbox item it asks about: once that is answered, the notification is dropped."""
    agent: str | None = None
    schedule: str | None = None
    run_id: str | None = None
    """The workflow run that it is about."""
    attempts: int = 0
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    sent_at: datetime | None = None
    last_error: str | None = None
    number: int = 0
    """Place in the order of queueing, and the cursor of lists."""

    @property
    def is_open(self) -> bool:
        """Whether it is still to be sent."""
        return self.status in (NotificationStatus.PENDING, NotificationStatus.SENDING)


class NotificationTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What a notification says, apart from its row: lists never read it. Rendered when it is sent."""

    notification_id: NotificationId
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A notification with what it says, not yet numbered."""

    notification: Notification
    texts: NotificationTexts


class TargetState(msgspec.Struct, frozen=True, kw_only=True):
    """What is on record about a target."""

    id: str
    since: int
    """The change of the ledger after which it is told what happens."""
    is_active: bool = True
    """Whether the fleet file has it."""
    failures: int = 0
    """Attempts in a row that failed."""
    failing_since: datetime | None = None
    last_error: str | None = None
    paused_until: datetime | None = None
    last_sent_at: datetime | None = None
    digest_at: datetime | None = None
    """The due instant of its latest digest."""


class NotifyCursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far the ledger was turned into notifications."""

    id: str
    change: int


class NotificationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which notifications a list shows: newest first, those before the number `before`, at most `limit`."""

    target: str | None = None
    status: NotificationStatus | None = None
    before: int | None = None
    limit: int = 20


def notification_id(dedupe_key: str) -> NotificationId:
    """Return the id of the notification with that key: the same for every try to queue the same."""
    return NotificationId(f"ntf-{sha256(dedupe_key.encode()).hexdigest()[:12]}")
