"""Digests are queued when they are due, once, and say what ended since the last one."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.notifications.outbox import PHONE, Outbox, approval, fleet_of, outbox
from nightherd.engine.notifications.notifier import Notifier
from nightherd.model.notifications.target import Digest, NotifyEvent
from nightherd.testing.determinism import FakeClock
from nightherd.testing.recording_sender import RecordingSender
from nightherd.testing.state_values import BEGINNING, settle, start, submit

MORNING = replace(
    PHONE,
    events=frozenset({NotifyEvent.DIGEST}),
    digest=Digest(at=time(7, 30), timezone="Europe/Berlin"),
)
EVENING = BEGINNING  # 2026-03-01 12:00 UTC


def digests(folder: Path, *, days: int, restarts: bool = False) -> RecordingSender:
    """What is sent in so many days of rounds every ten minutes."""
    sender, clock = RecordingSender(), FakeClock(EVENING)

    async def main() -> None:
        async with outbox(folder, fleet_of(MORNING), sender, clock=clock) as box:
            await box.round()
            await box.apply(submit(1), start(1), settle(1))
            await box.apply(submit(2), start(2), approval(2))
            for _ in range(days * 144):
                if restarts:
                    box.notifier = Notifier(box.fleet, box.context)
                await box.round()
                clock.advance(timedelta(minutes=10))

    anyio.run(main)
    return sender


def test_one_digest_a_day_says_what_ran_and_what_waits(tmp_path: Path) -> None:
    sent = digests(tmp_path, days=3)

    assert sent.titles == [
        "Digest: 1 job ended, 0 failed, 1 waiting, $0.00",
        "Digest: 0 jobs ended, 0 failed, 1 waiting, $0.00",
        "Digest: 0 jobs ended, 0 failed, 1 waiting, $0.00",
    ]
    first = sent.outgoing[0].message
    assert "grazer: 1 completed, 0 failed, $0.00" in first.text
    assert "nightherd inbox approve ask-" in first.text
    assert first.html is not None
    assert "<li>grazer: 1 completed" in first.html


def test_restarts_send_no_digest_twice(tmp_path: Path) -> None:
    assert len(digests(tmp_path, days=2, restarts=True).outgoing) == 2


def test_a_missed_digest_is_sent_at_the_next_start_once(tmp_path: Path) -> None:
    sender, clock = RecordingSender(), FakeClock(EVENING)

    async def begin(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))

    async def main() -> None:
        async with outbox(tmp_path, fleet_of(MORNING), sender, clock=clock) as box:
            await begin(box)
        clock.advance(timedelta(days=3))
        async with outbox(tmp_path, fleet_of(MORNING), sender, clock=clock) as box:
            await box.round()
            await box.round()
            (target,) = box.reader.list_notify_targets()
            assert target.digest_at == datetime(2026, 3, 4, 6, 30, tzinfo=UTC)

    anyio.run(main)

    assert sender.titles == ["Digest: 1 job ended, 0 failed, 0 waiting, $0.00"]
