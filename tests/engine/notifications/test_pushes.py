"""Pushes follow the ledger like every notification: once for each device, in order, with pauses, and only while it is subscribed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.notifications.outbox import (
    ALL_EVENTS,
    PHONE,
    Outbox,
    approval,
    fleet_of,
    outbox,
)
from nightherd.engine.operations.push import NewDevice, subscribe, unsubscribe
from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.model.access.web import Web, WebPush
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.changes import AnswerItem
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.job import ExitReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.notifications.notification import NotificationStatus
from nightherd.model.push.keys import encode_key
from nightherd.model.push.payload import topic_of
from nightherd.model.push.subscription import PushEnd, PushSubscription
from nightherd.model.secrets import knowing
from nightherd.ports import OutgoingPush, SendResult
from nightherd.runtimes.notify.vapid import make_push_keys
from nightherd.state.rebuild import rebuild_database
from nightherd.testing.determinism import FakeClock
from nightherd.testing.recording_sender import RecordingPushSender
from nightherd.testing.state_values import BEGINNING, settle, start, submit

POINT = make_push_keys().public_key
FAILED = Outcome(exit_reason=ExitReason.ERROR, error="no disk", error_code="broken")
SECRET = encode_key(b"s" * 16)
DASHBOARD = Web(
    enabled=True,
    push=WebPush(contact="mailto:ops@fleet.example", allow_hosts=("push.lan",)),
    identity_header="x-user",
    people={"anna": Role.VIEWER},
)


def fleet(*targets: Any, web: Web = DASHBOARD) -> Fleet:
    return replace(fleet_of(*targets), web=web)


def new_device(name: str = "one", **more: Any) -> NewDevice:
    fields: dict[str, Any] = {
        "endpoint": f"https://push.example/send/{name}",
        "p256dh": POINT,
        "auth": SECRET,
        "label": name,
        "inbox": True,
        "failures": True,
        "person": "anna",
        **more,
    }
    return NewDevice(**fields)


async def device(box: Outbox, name: str = "one", **more: Any) -> PushSubscription:
    """Subscribe a device."""
    return await subscribe(
        new_device(name, **more),
        box.store,
        at=box.clock.now(),
        random_text=box.context.random_text,
        change=box.context.ledger_end(),
        public_key=box.context.pushes.public_key(),
    )


def payloads(pushes: RecordingPushSender) -> list[dict[str, Any]]:
    return [json.loads(one.payload) for one in pushes.outgoing]


def titles(pushes: RecordingPushSender) -> list[str]:
    return [str(one["title"]) for one in payloads(pushes)]


def failing(error: str, **more: Any) -> Callable[[OutgoingPush], SendResult]:
    return lambda _: SendResult(error=error, **more)


def test_a_device_is_told_what_waits_and_what_failed(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await device(box)
            await box.apply(submit(1), start(1), settle(1, answer="well"))
            await box.apply(submit(2), start(2), settle(2, outcome=FAILED))
            await box.apply(submit(3), start(3), approval(3))
            await box.round()
            await box.round()

    anyio.run(main)

    first, second = payloads(pushes)
    assert (first["kind"], first["title"]) == ("failed", "grazer failed: no disk")
    assert second["kind"] == "approval"
    assert second["title"] == "grazer needs approval: Bash: git push"
    assert second["path"] == f"inbox/{second['item']}"
    sent = pushes.outgoing[1]
    assert sent.endpoint == "https://push.example/send/one"
    assert (sent.contact, sent.allow_hosts) == ("mailto:ops@fleet.example", ("push.lan",))
    assert sent.topic == topic_of(second["path"])


def test_a_device_is_told_only_about_its_topics(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await device(box, "waits", failures=False)
            await device(box, "fails", inbox=False)
            await box.apply(submit(1), start(1), approval(1))
            failed = settle(2, outcome=FAILED)
            await box.apply(submit(2), start(2), failed)
            await box.round()

    anyio.run(main)

    told = [(one.endpoint.rpartition("/")[2], json.loads(one.payload)) for one in pushes.outgoing]
    assert [(name, one["kind"]) for name, one in told if name == "fails"] == [("fails", "failed")]
    # A failure asks whether to try again: it is in the inbox too.
    assert [one["kind"] for name, one in told if name == "waits"] == ["approval", "failed"]


def test_each_device_is_told_once_whoever_looks(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with (
            outbox(tmp_path, fleet(PHONE), pushes=pushes) as box,
            outbox(tmp_path, fleet(PHONE), pushes=pushes, by="worker-2") as other,
        ):
            await device(box, "one")
            await device(box, "two", person="bob")
            await box.apply(submit(1), start(1), approval(1))
            for _ in range(3):
                await box.round()
                await other.round()

    anyio.run(main)

    assert sorted(one.endpoint for one in pushes.outgoing) == [
        "https://push.example/send/one",
        "https://push.example/send/two",
    ]


def test_a_new_device_is_told_what_happens_from_its_subscription_on(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await box.round()
            await box.apply(submit(1), start(1), approval(1, title="Bash: before"))
            await device(box)
            await box.apply(submit(2), start(2), approval(2, title="Bash: after"))
            await box.round()
            await box.round()

    anyio.run(main)

    assert titles(pushes) == ["grazer needs approval: Bash: after"]


def test_a_device_misses_nothing_that_happens_while_no_process_looks(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await device(box)
            await box.apply(submit(1), start(1), approval(1))
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await box.round()

    anyio.run(main)

    assert titles(pushes) == ["grazer needs approval: Bash: git push"]


def test_an_answered_item_is_not_pushed_and_a_reminder_replaces_the_first(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await device(box)
            asking = approval(1, remind_s=(3600.0, 7200.0))
            await box.apply(submit(1), start(1), asking)
            await box.round()
            box.clock.advance(timedelta(hours=1))
            await box.round()
            answer = AnswerItem(
                item_id=asking.asked[0].item.id,
                verdict=Verdict.REJECT,
                by="bob",
                via="cli",
                at=box.clock.now(),
            )
            await box.apply(answer)
            box.clock.advance(timedelta(hours=1))
            await box.round()

    anyio.run(main)

    first, second = pushes.outgoing
    assert first.topic == second.topic
    assert titles(pushes)[1].startswith("Reminder: ")


def test_a_device_that_is_gone_ends_and_gets_nothing_more(tmp_path: Path) -> None:
    pushes = RecordingPushSender()
    pushes.answer = failing("gone", is_permanent=True, is_gone=True)

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            one = await device(box)
            await box.apply(submit(1), start(1), approval(1))
            await box.apply(submit(2), start(2), approval(2))
            for _ in range(3):
                await box.round()

            found = box.reader.find_push_subscription(one.id)
            assert found is not None
            assert (found.end_reason, found.endpoint, found.auth) == (PushEnd.GONE, "", "")
            assert [row.status for row in box.rows()] == [
                NotificationStatus.FAILED,
                NotificationStatus.DROPPED,
            ]
            assert [state.is_active for state in box.reader.list_notify_targets()] == [False]

    anyio.run(main)

    assert len(pushes.outgoing) == 1


def test_a_service_that_asks_to_wait_gets_the_next_push_after_that_time(tmp_path: Path) -> None:
    pushes = RecordingPushSender()
    pushes.answer = failing("the push service answered 429", retry_after=timedelta(minutes=30))

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            await device(box)
            await box.apply(submit(1), start(1), approval(1))
            await box.round()
            (state,) = box.reader.list_notify_targets()
            assert state.paused_until is not None
            assert timedelta(0) < box.clock.now() + timedelta(minutes=30) - state.paused_until
            assert state.paused_until > box.clock.now() + timedelta(minutes=29)
            assert state.last_error == "the push service answered 429"
            pushes.answer = lambda _: SendResult()
            box.clock.advance(timedelta(minutes=29))
            await box.round()
            assert len(pushes.outgoing) == 1
            box.clock.advance(timedelta(minutes=2))
            await box.round()
            (state,) = box.reader.list_notify_targets()
            assert (state.failures, state.failing_since) == (0, None)

    anyio.run(main)

    assert len(pushes.outgoing) == 2


def test_what_a_push_says_is_masked_and_so_is_what_went_wrong(tmp_path: Path) -> None:
    pushes = RecordingPushSender()
    pushes.answer = failing("cannot reach hunter2hunter2")

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            secrets = knowing({"hunter2hunter2": "PASSWORD"})
            box.notifier.adopt(box.fleet, {}, secrets)
            box.context = replace(box.context, secrets=secrets)
            await device(box)
            await box.apply(submit(1), start(1), approval(1, title="Bash: login hunter2hunter2"))
            await box.round()
            (row,) = box.rows()
            assert "hunter2hunter2" not in (row.last_error or "hunter2hunter2")

    anyio.run(main)

    assert "hunter2hunter2" not in pushes.outgoing[0].payload


def test_a_device_made_with_another_key_ends_instead_of_failing_for_ever(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            one = await device(box)
            pushes.key = "another"
            await box.apply(submit(1), start(1), approval(1))
            await box.round()
            found = box.reader.find_push_subscription(one.id)
            assert found is not None
            assert found.end_reason is PushEnd.KEY_CHANGED

    anyio.run(main)

    assert pushes.outgoing == []


def test_a_person_whom_the_proxy_may_not_name_any_more_is_told_nothing(tmp_path: Path) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            anna = await device(box, "one", is_proxied=True)
            bob = await device(box, "two", is_proxied=True, person="bob")
            await box.apply(submit(1), start(1), approval(1))
            await box.round()
            found = [box.reader.find_push_subscription(one.id) for one in (anna, bob)]
            assert [one.end_reason for one in found if one] == [None, PushEnd.REVOKED]

    anyio.run(main)

    assert [one.endpoint for one in pushes.outgoing] == ["https://push.example/send/one"]


def test_without_a_dashboard_devices_are_not_told_and_targets_are(tmp_path: Path) -> None:
    pushes = RecordingPushSender()
    phone = replace(PHONE, events=ALL_EVENTS)

    async def main() -> None:
        async with outbox(tmp_path, fleet(phone), pushes=pushes) as box:
            await box.round()
            await device(box)
            box.adopt(fleet(phone, web=Web()))
            await box.apply(submit(1), start(1), approval(1))
            await box.round()
            assert [row.target for row in box.rows()] == ["phone"]
            assert [row.status for row in box.rows()] == [NotificationStatus.SENT]

    anyio.run(main)

    assert pushes.outgoing == []


def test_a_process_that_does_not_know_a_new_device_yet_leaves_its_events_alone(
    tmp_path: Path,
) -> None:
    pushes = RecordingPushSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet(PHONE), pushes=pushes) as box:
            await box.round()
            await device(box)
            await box.apply(submit(1), start(1), approval(1))
            # It looked for devices before this one was there.
            await box.notifier._follower.follow()
            assert box.rows() == []
            await box.round()
            assert sorted(row.target.partition(":")[0] for row in box.rows()) == ["phone", "push"]

    anyio.run(main)

    assert len(pushes.outgoing) == 1


def test_a_removed_device_is_its_owners_to_remove(tmp_path: Path) -> None:
    async def main() -> None:
        async with outbox(tmp_path, fleet()) as box:
            one = await device(box)
            for stranger, push_id in (("bob", one.id), ("anna", "psh-unknown")):
                with pytest.raises(NotFoundError, match="has no device"):
                    await unsubscribe(push_id, box.store, box.reader, person=stranger, at=BEGINNING)
            ended = await unsubscribe(one.id, box.store, box.reader, person="anna", at=BEGINNING)
            again = await unsubscribe(one.id, box.store, box.reader, person="anna", at=BEGINNING)
            assert ended == again
            assert ended.end_reason is PushEnd.REMOVED

    anyio.run(main)


def test_a_database_made_again_from_the_ledger_has_its_devices_and_pushes_once(
    tmp_path: Path,
) -> None:
    pushes = RecordingPushSender()

    async def before() -> PushSubscription:
        async with outbox(tmp_path, fleet(), pushes=pushes) as box:
            kept, removed = await device(box, "kept"), await device(box, "removed")
            await unsubscribe(removed.id, box.store, box.reader, person="anna", at=BEGINNING)
            await box.apply(submit(1), start(1), approval(1, title="Bash: sent"))
            await box.round()
            await box.apply(submit(2), start(2), approval(2, title="Bash: recorded"))
            return kept

    kept = anyio.run(before)
    root = tmp_path / ".nightherd"
    for file in root.glob("nightherd.db*"):
        file.unlink()
    rebuild_database(root, at=BEGINNING, is_there=lambda worker: False)

    async def after() -> None:
        later = FakeClock(BEGINNING + timedelta(hours=2))
        async with outbox(tmp_path, fleet(), pushes=pushes, clock=later) as box:
            assert list(box.reader.active_push_subscriptions()) == [kept]
            await box.round()

    anyio.run(after)

    told = [(one.endpoint, json.loads(one.payload)["title"]) for one in pushes.outgoing]
    assert told == [
        ("https://push.example/send/kept", "grazer needs approval: Bash: sent"),
        ("https://push.example/send/kept", "grazer needs approval: Bash: recorded"),
    ]
