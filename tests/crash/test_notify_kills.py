"""A notifier killed anywhere between ledger, outbox, sending and settling: nothing is lost, at most one comes twice."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from pathlib import Path

import anyio
import pytest

from crash.notify_trials import NOTIFY, MailBox
from engine.notifications.outbox import PHONE, approval, fleet_of, outbox
from nightherd.model.notifications.notification import NotificationStatus
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import settle, start, submit

EXPECTED = [
    "grazer completed: one",
    "grazer completed: two",
    "grazer needs approval: Bash: git push",
    "grazer completed: four",
]
POINTS = (
    "notify.read",
    "notify.queued",
    "notify.claimed",
    "notify.sent",
    "notify.settled",
)
KILLS = 30
"""At least: every point of the notifier for every message, and those of the store on the way."""


async def fill(folder: Path) -> None:
    """Jobs that ended, and one that asks, all after the notifier began to follow."""
    async with outbox(folder, fleet_of(PHONE), MailBox(folder)) as box:
        await box.round()
        await box.apply(submit(1), start(1), settle(1, answer="one"))
        await box.apply(submit(2), start(2), settle(2, answer="two"))
        await box.apply(submit(3), start(3), approval(3))
        await box.apply(submit(4), start(4), settle(4, answer="four"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    anyio.run(fill, folder)
    return folder


def statuses(folder: Path) -> list[NotificationStatus]:
    async def read() -> list[NotificationStatus]:
        async with outbox(folder, fleet_of(PHONE), MailBox(folder)) as box:
            return [one.status for one in box.rows()]

    return anyio.run(read)


def test_killed_notifier_loses_nothing_and_repeats_at_most_the_message_on_its_way(
    filled: Path, fork_server: ForkServer, quick_path: Path
) -> None:
    whole = shutil.copytree(filled, quick_path / "whole")
    order = {"folder": str(whole), "nth": 0, "minutes": 0, "by": "first"}
    points = fork_server.run(NOTIFY, order)
    assert (points.status, points.error) == (0, "")
    assert MailBox(whole).titles == EXPECTED
    assert set(POINTS) <= set(points.said)
    assert len(points.said) >= KILLS

    for nth in range(1, len(points.said) + 1):
        folder = shutil.copytree(filled, quick_path / str(nth))
        killed = fork_server.run(NOTIFY, {**order, "folder": str(folder), "nth": nth})
        assert killed.status == -signal.SIGKILL, (nth, killed)
        # Before the claim has passed nobody takes it over; the others wait behind it.
        early = fork_server.run(
            NOTIFY, {"folder": str(folder), "nth": 0, "minutes": 0, "by": "second"}
        )
        late = fork_server.run(
            NOTIFY, {"folder": str(folder), "nth": 0, "minutes": 10, "by": "third"}
        )

        assert (early.status, late.status) == (0, 0), (nth, early.error, late.error)
        arrived = MailBox(folder).titles
        counts = Counter(arrived)
        assert list(dict.fromkeys(arrived)) == EXPECTED, (nth, points.said[nth - 1], arrived)
        assert sum(counts.values()) - len(EXPECTED) <= 1, (nth, arrived)
        assert set(statuses(folder)) == {NotificationStatus.SENT}, nth
        shutil.rmtree(folder)
