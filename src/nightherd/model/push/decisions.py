"""Deciding about subscriptions to pushes. Each is a target of notifications, with a state that begins and ends with it."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.access.browser_session import BrowserSession
from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.token import Token
from nightherd.model.notifications.notification import (
    LEDGER,
    NOTIFICATION_LIFECYCLE,
    NotificationStatus,
    NotifyCursor,
    TargetState,
)
from nightherd.model.push.subscription import (
    MOST_DEVICES,
    PUSH_LIFECYCLE,
    AddPushSubscription,
    EndPushSubscriptions,
    PushEnd,
    PushStatus,
    PushSubscription,
)

UNSENT = "the device's subscription ended"


def add(change: AddPushSubscription, rows: Rows) -> Answer:
    """Add the subscription, or change the one that the person has for the same endpoint; other people's end."""
    new = change.subscription
    if _is_logged_out(new, rows):
        return Refused(why=Why.STALE, message="this login has ended; log in again")
    active = rows.active_push_subscriptions()
    same = [one for one in active if one.endpoint == new.endpoint]
    mine = next((one for one in same if one.person == new.person), None)
    if mine is None and sum(one.person == new.person for one in active) >= MOST_DEVICES:
        message = f"{new.person} has {MOST_DEVICES} devices with pushes; remove one first"
        return Refused(why=Why.FULL, message=message)
    if mine is None and rows.get(PushSubscription, new.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a subscription {new.id} already")
    written: list[Row] = []
    for one in same:
        if one is not mine:
            written += _ended(one, PushEnd.REPLACED, new.created_at, rows)
    if mine is not None:
        written.append(replace(new, id=mine.id, created_at=mine.created_at))
        return Applied(rows=tuple(written))
    written += (new, TargetState(id=new.target, since=change.change))
    if rows.get(NotifyCursor, LEDGER) is None:
        written.append(NotifyCursor(id=LEDGER, change=change.change))
    return Applied(rows=tuple(written))


def _is_logged_out(new: PushSubscription, rows: Rows) -> bool:
    """Whether the login it was made in has ended since the request was let in."""
    if new.session_id is not None:
        session = rows.get(BrowserSession, new.session_id)
        if session is not None and session.ended_at is not None:
            return True
    token = None if new.token_hash is None else rows.get(Token, new.person)
    return token is not None and token.hash == new.token_hash and token.revoked_at is not None


def end(change: EndPushSubscriptions, rows: Rows) -> Answer:
    """End those that match and are not ended yet."""
    written: list[Row] = []
    for one in rows.active_push_subscriptions():
        if change.matches(one):
            written += _ended(one, change.reason, change.at, rows)
    return Applied(rows=tuple(written))


def _ended(one: PushSubscription, reason: PushEnd, at: datetime, rows: Rows) -> list[Row]:
    """The rows of a subscription that ends: nothing that pushes could be sent with is kept."""
    ended = replace(
        one,
        status=PUSH_LIFECYCLE.check(one.status, PushStatus.ENDED),
        endpoint="",
        p256dh="",
        auth="",
        ended_at=at,
        end_reason=reason,
    )
    written: list[Row] = [ended]
    state = rows.get(TargetState, one.target)
    if state is not None:
        written.append(replace(state, is_active=False, failing_since=None, paused_until=None))
    for unsent in rows.unsent_notifications(one.target):
        dropped = NOTIFICATION_LIFECYCLE.check(unsent.status, NotificationStatus.DROPPED)
        written.append(replace(unsent, status=dropped, last_error=UNSENT))
    return written
