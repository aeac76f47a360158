"""A process killed anywhere between the ledger, the outbox, a push and its settling: no push is lost, at most one comes twice."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import anyio
import pytest

from crash.push_trials import PUSH, PushBox, dashboard_fleet
from engine.notifications.outbox import approval, outbox
from engine.notifications.test_pushes import FAILED, device
from nightherd.model.notifications.notification import NotificationStatus
from nightherd.model.push.subscription import PushEnd, PushId
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import settle, start, submit

EXPECTED = [
    "grazer failed: no disk",
    "grazer needs approval: Bash: git push",
    "grazer needs approval: Bash: git push",
]
POINTS = {"notify.read", "notify.queued", "notify.claimed", "notify.sent", "notify.settled"}
KILLS = 20
"""At least: every point of the notifier for every push, and those of the store on the way."""


async def fill(folder: Path) -> PushId:
    """A device, then a failure and two items."""
    async with outbox(folder, dashboard_fleet(), pushes=PushBox(folder)) as box:
        subscription = await device(box)
        await box.apply(submit(1), start(1), settle(1, outcome=FAILED))
        await box.apply(submit(2), start(2), approval(2))
        await box.apply(submit(3), start(3), approval(3))
        return subscription.id


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PushId]:
    folder = tmp_path_factory.mktemp("fleet")
    return folder, anyio.run(fill, folder)


def found_in(folder: Path, push_id: PushId) -> tuple[list[NotificationStatus], PushEnd | None]:
    """Where the pushes stand, and why the device ended."""

    async def read() -> tuple[list[NotificationStatus], PushEnd | None]:
        async with outbox(folder, dashboard_fleet(), pushes=PushBox(folder)) as box:
            subscription = box.reader.find_push_subscription(push_id)
            assert subscription is not None
            return [one.status for one in box.rows()], subscription.end_reason

    return anyio.run(read)


def test_no_push_is_lost_and_only_the_one_on_its_way_comes_twice(
    filled: tuple[Path, PushId], fork_server: ForkServer, quick_path: Path
) -> None:
    source, push_id = filled
    whole = shutil.copytree(source, quick_path / "whole")
    order = {"folder": str(whole), "nth": 0, "minutes": 0, "by": "first"}
    points = fork_server.run(PUSH, order)
    assert (points.status, points.error) == (0, "")
    expected = PushBox(whole).arrived
    assert [title for title, _ in expected] == EXPECTED
    assert len({topic for _, topic in expected}) == 3
    assert set(points.said) >= POINTS
    assert len(points.said) >= KILLS

    for nth, point in enumerate(points.said, start=1):
        folder = shutil.copytree(source, quick_path / str(nth))
        killed = fork_server.run(PUSH, {**order, "folder": str(folder), "nth": nth})
        assert killed.status == -signal.SIGKILL, (nth, killed)
        # Before the claim has passed nobody takes it over; the others wait behind it.
        again = {"folder": str(folder), "nth": 0}
        early = fork_server.run(PUSH, {**again, "minutes": 0, "by": "second"})
        late = fork_server.run(PUSH, {**again, "minutes": 10, "by": "third"})

        assert (early.status, late.status) == (0, 0), (nth, early.error, late.error)
        arrived = PushBox(folder).arrived
        assert list(dict.fromkeys(arrived)) == expected, (nth, point, arrived)
        # The gap: it was sent, and nothing says so yet. The topic makes the second replace the first.
        assert len(arrived) - len(expected) <= 1, (nth, point, arrived)
        if point == "notify.sent":
            assert len(arrived) == len(expected) + 1, (nth, arrived)
        if point in ("notify.claimed", "notify.settled", "notify.queued", "notify.read"):
            assert len(arrived) == len(expected), (nth, point, arrived)
        assert found_in(folder, push_id) == ([NotificationStatus.SENT] * 3, None), nth
        shutil.rmtree(folder)


def test_a_device_that_is_gone_ends_whoever_is_killed(
    filled: tuple[Path, PushId], fork_server: ForkServer, quick_path: Path
) -> None:
    source, push_id = filled
    whole = shutil.copytree(source, quick_path / "whole")
    PushBox(whole).forget_device()
    order = {"folder": str(whole), "nth": 0, "minutes": 0, "by": "first"}
    points = fork_server.run(PUSH, order)
    assert points.status == 0, points.error
    assert len(PushBox(whole).arrived) == 1

    for nth in range(1, len(points.said) + 1):
        folder = shutil.copytree(source, quick_path / str(nth))
        PushBox(folder).forget_device()
        killed = fork_server.run(PUSH, {**order, "folder": str(folder), "nth": nth})
        assert killed.status == -signal.SIGKILL, (nth, killed)
        late = fork_server.run(
            PUSH, {"folder": str(folder), "nth": 0, "minutes": 10, "by": "second"}
        )

        assert late.status == 0, (nth, late.error)
        statuses, reason = found_in(folder, push_id)
        assert reason is PushEnd.GONE, (nth, points.said[nth - 1])
        assert set(statuses) <= {NotificationStatus.FAILED, NotificationStatus.DROPPED}, nth
        assert 1 <= len(PushBox(folder).arrived) <= 2, nth
        shutil.rmtree(folder)
