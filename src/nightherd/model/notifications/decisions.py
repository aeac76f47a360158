"""Deciding about notifications: each queued once, sent in order for each target, retried after growing pauses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem
from nightherd.model.notifications.changes import (
    ClaimNotification,
    DeclareTargets,
    FollowLedger,
    QueueNotifications,
    RetryTarget,
    SettleNotification,
)
from nightherd.model.notifications.notification import (
    ERROR_LIMIT,
    NOTIFICATION_LIFECYCLE,
    Notification,
    NotificationStatus,
    NotifyCursor,
    Queued,
    TargetState,
)
from nightherd.model.push.subscription import is_device
from nightherd.model.text import shorten

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=15)
MOST_DOUBLINGS = 10
LONGEST_WISH = timedelta(hours=24)
"""The longest `Retry-After` that is obeyed."""
LOOKED_AT = 50
"""Notifications that one claim may drop before it gives back what it did."""
REMOVED = "its target was removed from the fleet file"
ANSWERED = "answered before it was sent"


def pause_after(failures: int, wish: timedelta | None) -> timedelta:
    """Return how long a target is left alone after so many failures in a row, the last one included."""
    doubled: int = 2 ** min(max(failures - 1, 0), MOST_DOUBLINGS)
    own = min(FIRST_PAUSE * doubled, LONGEST_PAUSE)
    return own if wish is None else max(own, min(wish, LONGEST_WISH))


def declare(change: DeclareTargets, rows: Rows) -> Answer:
    """Begin with new targets where the ledger is now; drop what is queued for those that are gone."""
    written: list[Row] = []
    known = {state.id: state for state in rows.notify_targets()}
    for name in change.targets:
        state = known.get(name)
        if state is None or not state.is_active:
            written.append(TargetState(id=name, since=change.change, digest_at=change.at))
        elif state.since > change.change:
            written.append(replace(state, since=change.change))  # the ledger was made anew
    for name, state in known.items():
        if is_device(name):
            # It begins and ends with its subscription.
            if state.is_active and state.since > change.change:
                written.append(replace(state, since=change.change))
        elif change.is_whole and state.is_active and name not in change.targets:
            written.append(replace(state, is_active=False, failing_since=None, paused_until=None))
            written += (
                replace(_step(one, NotificationStatus.DROPPED), last_error=REMOVED)
                for one in rows.unsent_notifications(name)
            )
    cursor = rows.get(NotifyCursor, change.cursor)
    if cursor is None or cursor.change > change.change:
        written.append(NotifyCursor(id=change.cursor, change=change.change))
    return Applied(rows=tuple(written))


def follow(change: FollowLedger, rows: Rows) -> Answer:
    """Queue what the changes came to, and move the cursor behind them."""
    cursor = rows.get(NotifyCursor, change.cursor)
    if cursor is None or cursor.change != change.after:
        return Refused(why=Why.STALE, message="another process has followed the ledger further")
    moved = replace(cursor, change=change.change)
    return Applied(rows=(moved, *_new(change.queued, rows)))


def queue(change: QueueNotifications, rows: Rows) -> Answer:
    """Add the notifications that are not there yet."""
    new = tuple(_new(change.queued, rows))
    if change.digest_at is None:
        return Applied(rows=new)
    names = dict.fromkeys(one.notification.target for one in change.queued)
    states = [state for name in names if (state := rows.get(TargetState, name)) is not None]
    return Applied(rows=(*(replace(one, digest_at=change.digest_at) for one in states), *new))


def _new(queued: Iterable[Queued], rows: Rows) -> Iterator[Row]:
    number = rows.next_notification_number()
    seen = set()
    for one in queued:
        key = one.notification.id
        if key not in seen and not _is_over(one, rows) and rows.get(Notification, key) is None:
            seen.add(key)
            yield replace(one.notification, number=number)
            yield one.texts
            number += 1


def _is_over(one: Queued, rows: Rows) -> bool:
    """Whether it is for a device whose subscription ended meanwhile."""
    if not is_device(one.notification.target):
        return False
    state = rows.get(TargetState, one.notification.target)
    return state is None or not state.is_active


def claim(change: ClaimNotification, rows: Rows) -> Answer:
    """Take the next one; those that nobody needs any more are dropped on the way.

    Applied without a row of this process: there were only such; ask again.
    """
    state = rows.get(TargetState, change.target)
    nothing = Refused(why=Why.NOTHING, message=f"nothing is due for {change.target}")
    if state is None or not state.is_active:
        return nothing
    if state.paused_until is not None and state.paused_until > change.at:
        return nothing
    dropped: list[Row] = []
    for one in rows.due_notifications(change.target, change.at, LOOKED_AT):
        is_taken = one.status is NotificationStatus.SENDING
        if is_taken and one.claimed_until is not None and one.claimed_until > change.at:
            break
        if _is_answered(one, rows):
            dropped.append(replace(_step(one, NotificationStatus.DROPPED), last_error=ANSWERED))
            continue
        claimed = replace(
            _step(one, NotificationStatus.SENDING),
            claimed_by=change.by,
            claimed_until=change.until,
            attempts=one.attempts + 1,
        )
        return Applied(rows=(*dropped, claimed))
    return Applied(rows=tuple(dropped)) if dropped else nothing


def settle(change: SettleNotification, rows: Rows) -> Answer:
    """Record what came of sending it: sent, to be tried again after a pause, or given up."""
    one = rows.get(Notification, change.notification_id)
    if one is None:
        return Refused(
            why=Why.MISSING, message=f"there is no notification {change.notification_id}"
        )
    if one.status is not NotificationStatus.SENDING or one.claimed_by != change.by:
        message = f"{one.id} is not being sent by {change.by} any more"
        return Refused(why=Why.STALE, message=message)
    state = rows.get(TargetState, one.target) or TargetState(id=one.target, since=0)
    free = replace(one, claimed_by=None, claimed_until=None)
    if change.error is None:
        sent = replace(_step(free, NotificationStatus.SENT), sent_at=change.at, last_error=None)
        well = replace(
            state,
            failures=0,
            failing_since=None,
            last_error=None,
            paused_until=None,
            last_sent_at=change.at,
        )
        return Applied(rows=(well, sent))
    error = shorten(" ".join(change.error.split()), ERROR_LIMIT)
    failures = state.failures + 1
    pause = None if change.is_permanent else pause_after(failures, change.retry_after)
    failing = replace(
        state,
        failures=failures,
        failing_since=state.failing_since or change.at,
        last_error=error,
        paused_until=None if pause is None else change.at + pause,
    )
    is_over = change.is_permanent or change.at >= one.give_up_at
    status = NotificationStatus.FAILED if is_over else NotificationStatus.PENDING
    return Applied(rows=(failing, replace(_step(free, status), last_error=error)))


def retry(change: RetryTarget, rows: Rows) -> Answer:
    """End the pause of a target that was failing."""
    state = rows.get(TargetState, change.target)
    if state is None or state.failing_since is None:
        return Applied(rows=())
    well = replace(
        state,
        failures=0,
        failing_since=None,
        last_error=None,
        paused_until=None,
        last_sent_at=change.at,
    )
    return Applied(rows=(well,))


def _step(one: Notification, status: NotificationStatus) -> Notification:
    return replace(one, status=NOTIFICATION_LIFECYCLE.check(one.status, status))


def _is_answered(one: Notification, rows: Rows) -> bool:
    if one.item_id is None:
        return False
    item = rows.get(InboxItem, one.item_id)
    return item is not None and not item.is_pending


def is_failing(state: TargetState) -> bool:
    """Whether what was last sent to the target was not taken."""
    return state.is_active and state.failing_since is not None


def failing_text(state: TargetState, now: datetime) -> str:
    """Say what is wrong with a target that fails."""
    error = state.last_error or "unknown error"
    times = "1 attempt" if state.failures == 1 else f"{state.failures} attempts"
    waits = state.paused_until is not None and state.paused_until > now
    again = f"; next attempt at {state.paused_until:%Y-%m-%d %H:%M:%S} UTC" if waits else ""
    return f"notify target {state.id} fails after {times}: {error}{again}"
