"""What every state store must do with notifications; see `state_contract` for how to run it."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import Applied, Change, Refused, Why
from nightherd.model.inbox.changes import AskPerson, ExpireItem
from nightherd.model.inbox.item import (
    Asked,
    InboxItem,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    item_id,
)
from nightherd.model.notifications.changes import (
    ClaimNotification,
    DeclareTargets,
    FollowLedger,
    QueueNotifications,
    RetryTarget,
    SettleNotification,
)
from nightherd.model.notifications.notification import (
    Notification,
    NotificationId,
    NotificationQuery,
    NotificationStatus,
    NotificationTexts,
    Queued,
    notification_id,
)
from nightherd.model.notifications.target import NotifyEvent
from nightherd.testing.contracts.state import NOW, OpenState, checks_in, must_apply, must_refuse

PHONE, MAIL = "phone", "mail"
LEASE = timedelta(minutes=1)
DAY = timedelta(hours=24)


def message(
    name: str, *, target: str = PHONE, due_at: datetime = NOW, item: ItemId | None = None
) -> Queued:
    """A notification called `name`."""
    key = f"{name}:{target}"
    one = Notification(
        id=notification_id(key),
        target=target,
        event=NotifyEvent.FAILED,
        status=NotificationStatus.PENDING,
        created_at=NOW,
        due_at=due_at,
        give_up_at=due_at + DAY,
        dedupe_key=key,
        subject=name,
        item_id=item,
    )
    texts = NotificationTexts(notification_id=one.id, fields={"title": name, "steps": ["show_job"]})
    return Queued(notification=one, texts=texts)


def queue(*queued: Queued) -> QueueNotifications:
    """Queue them."""
    return QueueNotifications(queued=queued)


def declare(*targets: str, change: int = 10) -> DeclareTargets:
    """The fleet has these targets."""
    return DeclareTargets(targets=targets, change=change, at=NOW)


def claim(target: str = PHONE, *, by: str = "one", at: datetime = NOW) -> ClaimNotification:
    """Take the next one."""
    return ClaimNotification(target=target, by=by, at=at, until=at + LEASE)


def settle(
    one: NotificationId, *, by: str = "one", at: datetime = NOW, error: str | None = None
) -> SettleNotification:
    """Say what came of it."""
    return SettleNotification(notification_id=one, by=by, at=at, error=error)


async def claimed(state: OpenState, change: Change) -> str | None:
    """The subject of what is claimed; None for nothing."""
    (answer,) = await state.writer.apply([change])
    if isinstance(answer, Refused):
        assert answer.why is Why.NOTHING
        return None
    sending = [
        row
        for row in answer.rows
        if isinstance(row, Notification) and row.status is NotificationStatus.SENDING
    ]
    return sending[0].subject if sending else ""


def subjects(state: OpenState, query: NotificationQuery | None = None) -> list[str]:
    """The subjects of a list."""
    return [one.subject for one in state.reader.list_notifications(query or NotificationQuery())]


def status(state: OpenState, name: str, target: str = PHONE) -> NotificationStatus:
    """Where the notification stands."""
    found = state.reader.find_notification(notification_id(f"{name}:{target}"))
    assert found is not None
    return found.status


async def check_notification_is_queued_once(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a"), message("b")))
    await must_apply(state, queue(message("b"), message("b"), message("c")))

    assert subjects(state) == ["c", "b", "a"]
    texts = state.reader.find_notification_texts(notification_id("a:phone"))
    assert texts is not None
    assert texts.fields == {"title": "a", "steps": ["show_job"]}


async def check_cursor_and_notifications_move_together(state: OpenState) -> None:
    assert state.reader.notified_change() is None
    await must_apply(state, declare(PHONE, change=10))
    assert state.reader.notified_change() == 10

    await must_apply(state, FollowLedger(after=10, change=14, queued=(message("a"),)))
    refused = await must_refuse(state, FollowLedger(after=10, change=15, queued=(message("b"),)))

    assert refused.why is Why.STALE
    assert state.reader.notified_change() == 14
    assert subjects(state) == ["a"]


async def check_new_target_begins_at_the_end_of_the_ledger(state: OpenState) -> None:
    await must_apply(state, declare(PHONE, change=10))
    await must_apply(state, declare(PHONE, MAIL, change=90))

    since = {one.id: one.since for one in state.reader.list_notify_targets()}
    assert since == {PHONE: 10, MAIL: 90}
    assert state.reader.notified_change() == 10, "the others are told what happened meanwhile"


async def check_ledger_that_was_made_anew_is_followed_from_its_end(state: OpenState) -> None:
    await must_apply(state, declare(PHONE, change=90))
    await must_apply(state, declare(PHONE, change=3))

    assert state.reader.notified_change() == 3
    assert [one.since for one in state.reader.list_notify_targets()] == [3]


async def check_removed_target_drops_what_is_queued_and_begins_anew(state: OpenState) -> None:
    await must_apply(state, declare(PHONE, MAIL), queue(message("a"), message("b", target=MAIL)))

    await must_apply(state, declare(MAIL, change=20))

    assert status(state, "a") is NotificationStatus.DROPPED
    assert status(state, "b", MAIL) is NotificationStatus.PENDING
    assert await claimed(state, claim()) is None
    await must_apply(state, declare(PHONE, MAIL, change=30))
    since = {one.id: one.since for one in state.reader.list_notify_targets() if one.is_active}
    assert since == {PHONE: 30, MAIL: 10}


async def check_targets_of_other_agents_stay_when_only_some_are_declared(state: OpenState) -> None:
    await must_apply(state, declare(PHONE, MAIL), queue(message("a")))

    await must_apply(state, replace(declare(MAIL, change=20), is_whole=False))

    assert await claimed(state, claim()) == "a"


async def check_notifications_of_a_target_are_claimed_in_order(state: OpenState) -> None:
    later = NOW + timedelta(hours=1)
    await must_apply(
        state,
        declare(PHONE, MAIL),
        queue(
            message("later", due_at=later), message("a"), message("b"), message("c", target=MAIL)
        ),
    )

    assert await claimed(state, claim()) == "a"
    assert await claimed(state, claim(by="two")) is None, "one at a time"
    assert await claimed(state, claim(MAIL, by="two")) == "c", "targets do not wait for each other"
    await must_apply(state, settle(notification_id("a:phone")))
    assert await claimed(state, claim()) == "b"
    await must_apply(state, settle(notification_id("b:phone")))
    assert await claimed(state, claim()) is None, "not due yet"
    assert await claimed(state, claim(at=later)) == "later"


async def check_claim_that_passed_is_taken_over(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a")))
    first = notification_id("a:phone")
    assert await claimed(state, claim()) == "a"

    after = NOW + LEASE
    assert await claimed(state, claim(by="two", at=after)) == "a"

    refused = await must_refuse(state, settle(first, at=after))
    assert refused.why is Why.STALE, "the first one is not its owner any more"
    await must_apply(state, settle(first, by="two", at=after))
    assert status(state, "a") is NotificationStatus.SENT
    found = state.reader.find_notification(first)
    assert found is not None
    assert found.attempts == 2


async def check_failing_target_is_left_alone_for_growing_times(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a"), message("b")))
    first, at, pauses = notification_id("a:phone"), NOW, []
    for _ in range(4):
        assert await claimed(state, claim(at=at)) == "a", "nothing overtakes it"
        await must_apply(state, settle(first, at=at, error="the server answered 500"))
        (target,) = state.reader.list_notify_targets()
        assert target.paused_until is not None
        assert state.reader.due_notify_targets(at) == []
        assert await claimed(state, claim(at=target.paused_until - timedelta(seconds=1))) is None
        pauses.append(target.paused_until - at)
        at = target.paused_until

    assert state.reader.due_notify_targets(at) == [PHONE]
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == 4
    await must_apply(state, claim(at=at), settle(first, at=at))
    (target,) = state.reader.list_notify_targets()
    assert (target.failures, target.failing_since, target.last_error) == (0, None, None)
    assert await claimed(state, claim(at=at)) == "b"


async def check_target_that_works_again_is_sent_what_waits(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a")), claim())
    await must_apply(state, settle(notification_id("a:phone"), error="the server answered 500"))
    assert await claimed(state, claim()) is None

    await must_apply(state, RetryTarget(target=PHONE, at=NOW), RetryTarget(target=MAIL, at=NOW))

    (target,) = state.reader.list_notify_targets()
    assert (target.failures, target.last_error, target.last_sent_at) == (0, None, NOW)
    assert await claimed(state, claim()) == "a"


async def check_server_that_names_a_time_is_left_alone_until_then(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a")), claim())
    failed = settle(notification_id("a:phone"), error="the server answered 429")
    await must_apply(state, replace(failed, retry_after=timedelta(minutes=10)))

    (target,) = state.reader.list_notify_targets()
    assert target.paused_until == NOW + timedelta(minutes=10)


async def check_message_is_given_up_when_its_time_has_passed(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a"), message("b", due_at=NOW + DAY)))
    await must_apply(state, claim(at=NOW + DAY))

    await must_apply(
        state, settle(notification_id("a:phone"), at=NOW + DAY, error="the server answered 500")
    )

    assert status(state, "a") is NotificationStatus.FAILED
    (target,) = state.reader.list_notify_targets()
    assert target.last_error == "the server answered 500"
    assert target.failing_since == NOW + DAY
    assert await claimed(state, claim(at=NOW + DAY + DAY)) == "b"


async def check_refused_message_does_not_stop_the_next(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a"), message("b")), claim())
    failed = settle(notification_id("a:phone"), error="the server answered 400")
    await must_apply(state, replace(failed, is_permanent=True))

    assert status(state, "a") is NotificationStatus.FAILED
    assert await claimed(state, claim()) == "b"


async def check_notification_of_an_answered_item_is_dropped(state: OpenState) -> None:
    expires = NOW + timedelta(minutes=1)
    item = InboxItem(
        id=item_id("reload"),
        kind=ItemKind.RELOAD,
        status=ItemStatus.PENDING,
        created_at=NOW,
        subject="nightherd.yaml",
        title="accept it?",
        dedupe_key="reload",
        expires_at=expires,
    )
    asked = AskPerson(asked=(Asked(item=item, texts=InboxTexts(item_id=item.id)),))
    await must_apply(state, asked, declare(PHONE))
    await must_apply(state, queue(message("a", item=item.id), message("b")))
    await must_apply(state, ExpireItem(item_id=item.id, at=expires))

    assert await claimed(state, claim(at=expires)) == "b"

    assert status(state, "a") is NotificationStatus.DROPPED


async def check_lists_of_notifications_are_pages(state: OpenState) -> None:
    many = [message(f"m{number}", target=(PHONE, MAIL)[number % 2]) for number in range(6)]
    await must_apply(state, declare(PHONE, MAIL), queue(*many), claim(MAIL))

    assert subjects(state, NotificationQuery(limit=2)) == ["m5", "m4"]
    assert subjects(state, NotificationQuery(limit=2, before=5)) == ["m3", "m2"]
    assert subjects(state, NotificationQuery(target=PHONE)) == ["m4", "m2", "m0"]
    sending = NotificationQuery(status=NotificationStatus.SENDING)
    assert subjects(state, sending) == ["m1"]
    assert subjects(state, replace(sending, target=PHONE)) == []
    assert state.reader.count_open_notifications(NOW) == {PHONE: 3, MAIL: 3}


async def check_nothing_is_written_when_nothing_is_new(state: OpenState) -> None:
    await must_apply(state, declare(PHONE), queue(message("a")))

    answers = await state.writer.apply([declare(PHONE, change=20), queue(message("a"))])

    assert [one.rows for one in answers if isinstance(one, Applied)] == [(), ()]


NOTIFICATION_CHECKS = checks_in(globals())
