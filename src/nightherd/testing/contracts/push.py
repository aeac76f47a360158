"""What every state store must do for devices that take pushes; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.access.browser_session import (
    AddBrowserSession,
    BrowserSession,
    EndBrowserSessions,
)
from nightherd.model.change import Why
from nightherd.model.inbox.token import AddToken, RevokeToken, Token, secret_hash
from nightherd.model.notifications.changes import (
    ClaimNotification,
    DeclareTargets,
    FollowLedger,
    QueueNotifications,
)
from nightherd.model.notifications.notification import (
    Notification,
    NotificationQuery,
    NotificationStatus,
    NotificationTexts,
    Queued,
    notification_id,
)
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.push.subscription import (
    MOST_DEVICES,
    AddPushSubscription,
    EndPushSubscriptions,
    PushEnd,
    PushId,
    PushStatus,
    PushSubscription,
)
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import BEGINNING

LATER = BEGINNING + timedelta(minutes=5)
TOKEN = Token(name="alice", hash=secret_hash("one"), created_at=BEGINNING, created_by="owner")


def device(number: int = 1, *, person: str = "alice") -> PushSubscription:
    """A subscription of `person`, whose endpoint has the number."""
    return PushSubscription(
        id=PushId(f"psh-{number:012}"),
        person=person,
        status=PushStatus.ACTIVE,
        inbox=True,
        failures=False,
        label="Browser",
        service="push.example",
        endpoint=f"https://push.example/send/{number}",
        p256dh="point",
        auth="secret",
        public_key="key",
        created_at=BEGINNING + timedelta(seconds=number),
    )


def add(one: PushSubscription, *, change: int = 10) -> AddPushSubscription:
    """Subscribe it."""
    return AddPushSubscription(subscription=one, change=change)


def ended(one: PushSubscription, reason: PushEnd = PushEnd.REMOVED) -> PushSubscription:
    """The subscription as it is after its end."""
    return replace(
        one,
        status=PushStatus.ENDED,
        endpoint="",
        p256dh="",
        auth="",
        ended_at=LATER,
        end_reason=reason,
    )


def remove(*ones: PushSubscription) -> EndPushSubscriptions:
    """Its person removes it."""
    return EndPushSubscriptions(ids=tuple(one.id for one in ones), at=LATER, reason=PushEnd.REMOVED)


def message(one: PushSubscription, name: str = "a") -> QueueNotifications:
    """Something that the device is to be told."""
    key = f"{name}:{one.target}"
    row = Notification(
        id=notification_id(key),
        target=one.target,
        event=NotifyEvent.FAILED,
        status=NotificationStatus.PENDING,
        created_at=BEGINNING,
        due_at=BEGINNING,
        give_up_at=BEGINNING + timedelta(days=1),
        dedupe_key=key,
        subject=name,
    )
    texts = NotificationTexts(notification_id=row.id, fields={"title": name})
    return QueueNotifications(queued=(Queued(notification=row, texts=texts),))


async def check_device_is_a_target_from_its_subscription_to_its_end(state: OpenState) -> None:
    first = device(1)
    assert state.reader.find_push_subscription(first.id) is None
    await must_apply(state, add(first, change=40), add(device(2, person="bob"), change=41))

    assert state.reader.find_push_subscription(first.id) == first
    assert list(state.reader.active_push_subscriptions()) == [first, device(2, person="bob")]
    targets = {one.id: (one.since, one.is_active) for one in state.reader.list_notify_targets()}
    assert targets == {first.target: (40, True), device(2).target: (41, True)}
    assert state.reader.notified_change() == 40, "the ledger is followed from the first on"

    await must_apply(state, message(first), remove(first), remove(first))

    assert state.reader.find_push_subscription(first.id) == ended(first)
    assert list(state.reader.active_push_subscriptions()) == [device(2, person="bob")]
    assert [one.id for one in state.reader.list_notify_targets() if one.is_active] == [
        device(2).target
    ]
    (dropped,) = state.reader.list_notifications(NotificationQuery())
    assert (dropped.status, dropped.last_error) == (
        NotificationStatus.DROPPED,
        "the device's subscription ended",
    )


async def check_message_on_its_way_is_dropped_with_its_device(state: OpenState) -> None:
    first = device(1)
    await must_apply(state, add(first), message(first))
    claim = ClaimNotification(
        target=first.target, by="one", at=BEGINNING, until=BEGINNING + timedelta(minutes=1)
    )
    await must_apply(state, claim, remove(first))

    refused = await must_refuse(state, replace(claim, at=LATER))

    (row,) = state.reader.list_notifications(NotificationQuery())
    assert row.status is NotificationStatus.DROPPED
    assert refused.why is Why.NOTHING


async def check_nothing_is_queued_for_a_device_that_ended(state: OpenState) -> None:
    first, second = device(1), device(2)
    await must_apply(state, add(first), add(second), remove(first))
    queued = (*message(first).queued, *message(second).queued)

    await must_apply(state, FollowLedger(after=10, change=20, queued=queued))

    found = state.reader.list_notifications(NotificationQuery())
    assert [one.target for one in found] == [second.target]


async def check_declared_targets_leave_devices_as_they_are(state: OpenState) -> None:
    first = device(1)
    await must_apply(state, add(first, change=40), message(first))

    await must_apply(state, DeclareTargets(targets=("phone",), change=90, at=LATER))
    since = {one.id: one.since for one in state.reader.list_notify_targets() if one.is_active}
    await must_apply(state, DeclareTargets(targets=(), change=3, at=LATER))

    assert since == {first.target: 40, "phone": 90}
    (row,) = state.reader.list_notifications(NotificationQuery())
    assert row.status is NotificationStatus.PENDING
    made_anew = {one.id: one.since for one in state.reader.list_notify_targets() if one.is_active}
    assert made_anew == {first.target: 3}, "the ledger was made anew"


async def check_same_endpoint_of_the_same_person_stays_one_subscription(state: OpenState) -> None:
    first = device(1)
    again = replace(
        first,
        id=PushId("psh-00000000000f"),
        failures=True,
        label="Phone",
        session_id="s2",
        created_at=LATER,
    )
    await must_apply(state, add(first, change=40), message(first), add(again, change=90))

    kept = replace(again, id=first.id, created_at=first.created_at)
    assert list(state.reader.active_push_subscriptions()) == [kept]
    assert [one.since for one in state.reader.list_notify_targets()] == [40]
    (row,) = state.reader.list_notifications(NotificationQuery())
    assert row.status is NotificationStatus.PENDING


async def check_endpoint_of_another_person_replaces_the_first(state: OpenState) -> None:
    first = device(1)
    second = replace(device(2, person="bob"), endpoint=first.endpoint, created_at=LATER)

    await must_apply(state, add(first), add(second))

    assert state.reader.find_push_subscription(first.id) == ended(first, PushEnd.REPLACED)
    assert list(state.reader.active_push_subscriptions()) == [second]


async def check_person_has_a_bounded_number_of_devices(state: OpenState) -> None:
    full = [device(number) for number in range(1, MOST_DEVICES + 1)]
    await must_apply(state, *(add(one) for one in full))

    refused = await must_refuse(state, add(device(99)))
    await must_apply(
        state, add(replace(full[0], id=PushId("psh-x"))), add(device(98, person="bob"))
    )
    taken = await must_refuse(state, add(replace(device(97, person="bob"), id=full[0].id)))

    assert refused.why is Why.FULL
    assert taken.why is Why.ID_TAKEN


async def check_revoked_token_ends_the_devices_of_its_owner(state: OpenState) -> None:
    mine = replace(device(1), token_hash=TOKEN.hash)
    others = replace(device(2), token_hash=secret_hash("two"))
    by_code = device(3)
    await must_apply(state, AddToken(token=TOKEN), *(add(one) for one in (mine, others, by_code)))

    await must_apply(state, RevokeToken(name="alice", by="owner", at=LATER))

    assert state.reader.find_push_subscription(mine.id) == ended(mine, PushEnd.REVOKED)
    assert list(state.reader.active_push_subscriptions()) == [others, by_code]


async def check_login_that_ended_subscribes_nothing(state: OpenState) -> None:
    session = BrowserSession(
        id=secret_hash("cookie"),
        secret_hash=secret_hash("secret"),
        person="alice",
        created_at=BEGINNING,
        expires_at=BEGINNING + timedelta(days=1),
    )
    by_browser = replace(device(1), session_id=session.id)
    by_token = replace(device(2), token_hash=TOKEN.hash)
    await must_apply(
        state,
        AddToken(token=TOKEN),
        AddBrowserSession(session=session),
        RevokeToken(name="alice", by="owner", at=LATER),
        EndBrowserSessions(ids=(session.id,), at=LATER),
    )

    refused = [await must_refuse(state, add(one)) for one in (by_browser, by_token)]

    assert [one.why for one in refused] == [Why.STALE, Why.STALE]
    await must_apply(state, add(replace(by_token, token_hash=secret_hash("two"))))


async def check_logging_out_ends_the_devices_of_that_login(state: OpenState) -> None:
    first, second = (replace(device(one), session_id=f"s{one}") for one in (1, 2))
    stranger = replace(device(3, person="bob"), session_id="s3")
    by_token = device(4)
    await must_apply(state, *(add(one) for one in (first, second, stranger, by_token)))
    out = EndPushSubscriptions(session_ids=("s1",), at=LATER, reason=PushEnd.LOGGED_OUT)

    await must_apply(state, out)
    assert list(state.reader.active_push_subscriptions()) == [second, stranger, by_token]
    await must_apply(state, replace(out, session_ids=(), logins_of="alice"))

    assert list(state.reader.active_push_subscriptions()) == [stranger, by_token]
    assert state.reader.find_push_subscription(second.id) == ended(second, PushEnd.LOGGED_OUT)


PUSH_CHECKS = checks_in(globals())
"""Every check of this module."""
