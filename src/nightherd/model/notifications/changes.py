"""Changes of notifications."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from nightherd.model.notifications.notification import LEDGER, NotificationId, Queued


class DeclareTargets(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet has these targets. A new one is told what happens after `change`; what is queued for others is dropped."""

    targets: tuple[str, ...]
    change: int
    at: datetime
    is_whole: bool = True
    """Whether these are all: with some agents of the fleet alone, the others' targets stay as they are."""
    cursor: str = LEDGER


class FollowLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The changes after `after` up to `change` have been turned into these notifications.

    Refused when the cursor is not at `after`: another process has done it.
    """

    after: int
    change: int
    queued: tuple[Queued, ...] = ()
    cursor: str = LEDGER


class QueueNotifications(msgspec.Struct, frozen=True, kw_only=True):
    """Queue notifications that are not there yet."""

    queued: tuple[Queued, ...]
    digest_at: datetime | None = None
    """The due instant, for digests: their targets remember it."""


class ClaimNotification(msgspec.Struct, frozen=True, kw_only=True):
    """Take the target's next notification that is due; it is this process's until `until`."""

    target: str
    by: str
    at: datetime
    until: datetime


class SettleNotification(msgspec.Struct, frozen=True, kw_only=True):
    """What came of sending a notification that this process has claimed."""

    notification_id: NotificationId
    by: str
    at: datetime
    error: str | None = None
    """Why it was not taken; None when it was."""
    is_permanent: bool = False
    """Whether the same message would be refused again."""
    retry_after: timedelta | None = None
    """How long the server wants to be left alone, where it says so."""


class RetryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The target works again: what waits for it is due now."""

    target: str
    at: datetime
