"""What is checked of a subscription where it enters, and what a push says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem, ItemId, ItemKind, ItemStatus
from nightherd.model.notifications.notification import (
    Notification,
    NotificationStatus,
    notification_id,
)
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.push.keys import (
    check_auth,
    check_p256dh,
    decode_key,
    encode_key,
    is_point,
)
from nightherd.model.push.payload import push_of, topic_of, trial_push
from nightherd.model.push.subscription import service_of
from nightherd.runtimes.notify.vapid import make_push_keys

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ITEM = InboxItem(
    id=ItemId("ask-0123456789ab"),
    kind=ItemKind.APPROVAL,
    status=ItemStatus.PENDING,
    created_at=NOW,
    subject="job-1",
    title="Bash: git push",
    dedupe_key="call",
    hash="h",
)
ROW = Notification(
    id=notification_id("key"),
    target="push:psh-1",
    event=NotifyEvent.APPROVAL,
    status=NotificationStatus.SENDING,
    created_at=NOW,
    due_at=NOW,
    give_up_at=NOW + DAY,
    dedupe_key="key",
    subject='grazer needs approval: Bash: "git push" ä',
    item_id=ITEM.id,
    job_id=JobId("job-2026-03-01-000001"),
    run_id="run-1",
)


@pytest.mark.parametrize(
    ("endpoint", "service"),
    [
        ("https://fcm.googleapis.com/fcm/send/a:b_c-d", "fcm.googleapis.com"),
        ("https://PUSH.example:8443/x?y=1", "push.example"),
        ("https://[2001:db8::1]/x", "2001:db8::1"),
    ],
)
def test_an_https_endpoint_is_taken(endpoint: str, service: str) -> None:
    assert service_of(endpoint) == service


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example/x",
        "ftp://push.example/x",
        "file:///etc/passwd",
        "https:///x",
        "push.example",
        "",
        "https://user:word@push.example/x",
        "https://push.example/x#y",
        "https://push.example:port/x",
        "https://push.example:0/x",
        "https://push.example/a b",
        "https://push.example/a\r\nx-evil: 1",
        "https://push.example/ä",
        "https://[push/x",
        "https://push.example/" + "x" * 2_000,
    ],
)
def test_another_endpoint_is_refused_without_being_shown(endpoint: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        service_of(endpoint)

    assert not endpoint or endpoint not in refused.value.message


@given(st.binary(max_size=80))
def test_keys_are_read_as_they_are_written(data: bytes) -> None:
    assert decode_key(encode_key(data)) == data


@pytest.mark.parametrize("text", ["a+b/", "ab\n", "äää", "a", "abc=d"])
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(InvalidValueError):
        decode_key(text)


def test_only_a_point_of_the_curve_is_a_browsers_key() -> None:
    point = decode_key(make_push_keys().public_key)
    moved = point[:-1] + bytes([point[-1] ^ 1])
    compressed = b"\x02" + point[1:33]

    assert check_p256dh(encode_key(point) + "=") == encode_key(point)
    for other in (moved, compressed, point[:-1], b"\x04" + b"\xff" * 64, b""):
        assert not is_point(other)
        with pytest.raises(InvalidValueError):
            check_p256dh(encode_key(other))


def test_a_browsers_secret_has_sixteen_bytes() -> None:
    assert check_auth(encode_key(b"a" * 16)) == encode_key(b"a" * 16)
    with pytest.raises(InvalidValueError, match="15 bytes"):
        check_auth(encode_key(b"a" * 15))


def test_a_push_says_its_title_and_where_to_look_and_nothing_else() -> None:
    push = push_of(ROW, ITEM, NOW)

    assert json.loads(push.payload) == {
        "kind": "approval",
        "title": 'grazer needs approval: Bash: "git push" ä',
        "item": ITEM.id,
        "path": f"inbox/{ITEM.id}",
    }
    assert (push.ttl, push.is_urgent) == (DAY, True)


def test_pushes_about_one_item_have_one_topic_which_does_not_name_it() -> None:
    reminder = replace(ROW, dedupe_key="key:remind:1", subject="Reminder: grazer")
    other = replace(ROW, item_id=ItemId("ask-ffffffffffff"))

    topics = [push_of(one, ITEM, NOW).topic for one in (ROW, reminder, other)]

    assert topics[0] == topics[1] != topics[2]
    assert topics[0] == topic_of(f"inbox/{ITEM.id}")
    assert len(topics[0] or "") == 32
    assert ITEM.id not in (topics[0] or "")


def test_a_push_leads_to_the_item_else_the_job_else_the_run() -> None:
    of_job = replace(ROW, item_id=None, event=NotifyEvent.FAILED)
    of_run = replace(of_job, job_id=None)

    found = [json.loads(push_of(one, None, NOW).payload) for one in (of_job, of_run)]

    assert [one["path"] for one in found] == ["jobs/job-2026-03-01-000001", "runs/run-1"]
    assert [(one["kind"], one["item"]) for one in found] == [("failed", None)] * 2
    assert not push_of(of_job, None, NOW).is_urgent


def test_a_push_service_keeps_a_push_no_longer_than_its_item_can_be_answered() -> None:
    soon = replace(ITEM, expires_at=NOW + timedelta(hours=1))
    past = replace(ITEM, expires_at=NOW - timedelta(hours=1))

    assert push_of(ROW, soon, NOW).ttl == timedelta(hours=1)
    assert push_of(ROW, past, NOW).ttl == timedelta(minutes=1)


def test_a_trial_push_leads_to_the_first_page() -> None:
    assert json.loads(trial_push().payload) == {
        "kind": "test",
        "title": "Test of nightherd",
        "item": None,
        "path": "",
    }
    assert trial_push().topic is None
