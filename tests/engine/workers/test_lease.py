"""Leases: on record while the worker works, lost when it cannot say in time that it is alive."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta

import anyio

from engine.yard import PATIENCE_S, until
from nightherd.engine.workers.lease import Lease, LeaseTerms, leased
from nightherd.errors import StateError
from nightherd.model.change import Answer, Change, EndWorker, ExtendLease
from nightherd.model.ids import WorkerId
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Process
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_state import MemoryStore

WORKER = WorkerId("worker-aaaaaaaa")
PROCESS = Process(host="here", pid=1, started="2", boot_id="boot")
TERMS = LeaseTerms(length_s=1.0, heartbeat_s=0.001)


class Disk(MemoryStore):
    """A store that can be full; it says when heartbeats have come."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        self.beats = 0
        self.deadlines: list[float] = []

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        if any(isinstance(change, ExtendLease) for change in changes):
            self.beats += 1
            self.deadlines += [
                change.deadline for change in changes if isinstance(change, ExtendLease)
            ]
        if self.is_full:
            raise StateError("no space left on device")
        return await super().apply(changes)


async def until_lost(lease: Lease, clock: FakeClock) -> None:
    await until(lambda: not lease.holds(clock.monotonic()))


async def until_beaten(disk: Disk, times: int) -> None:
    await until(lambda: disk.beats >= times)


def test_worker_is_on_record_while_it_works_and_has_left_after() -> None:
    disk, clock = Disk(), FakeClock()

    async def work() -> list[Worker]:
        async with leased(WORKER, PROCESS, TERMS, disk, clock):
            await until_beaten(disk, 3)
            return list(disk.reader().live_workers())

    (alive,) = anyio.run(work)

    assert (alive.id, alive.pid, alive.boot_id) == (WORKER, PROCESS.pid, PROCESS.boot_id)
    assert alive.heartbeat_at > alive.started_at
    assert disk.reader().live_workers() == []
    assert disk.deadlines == sorted(disk.deadlines)


def test_heartbeat_has_a_thread_of_its_own() -> None:
    disk, clock = Disk(), FakeClock()

    async def work() -> None:
        async with leased(WORKER, PROCESS, TERMS, disk, clock):
            # Nothing here gives way: a heartbeat in this thread would never come.
            for _ in range(int(PATIENCE_S * 1000)):
                if disk.beats >= 2:
                    return
                threading.Event().wait(0.001)

    anyio.run(work)

    assert disk.beats >= 2


def test_worker_that_was_given_up_loses_its_lease_at_the_next_heartbeat() -> None:
    disk, clock = Disk(), FakeClock()

    async def work() -> None:
        async with leased(WORKER, PROCESS, TERMS, disk, clock) as lease:
            given_up = EndWorker(worker_id=WORKER, status=WorkerStatus.LOST, at=clock.now())
            await disk.apply([given_up])
            await until_lost(lease, clock)

    anyio.run(work)

    assert disk.reader().live_workers() == []


def test_full_disk_is_outlived_as_long_as_the_lease_holds() -> None:
    disk, clock = Disk(), FakeClock(step=timedelta(microseconds=1))

    async def work() -> bool:
        async with leased(WORKER, PROCESS, TERMS, disk, clock) as lease:
            disk.is_full = True
            await until_beaten(disk, 3)
            disk.is_full = False
            await until_beaten(disk, 6)
            return lease.holds(clock.monotonic())

    assert anyio.run(work)


def test_disk_that_stays_full_until_the_deadline_loses_the_lease() -> None:
    disk, clock = Disk(), FakeClock(step=timedelta(microseconds=1))

    async def work() -> None:
        async with leased(WORKER, PROCESS, TERMS, disk, clock) as lease:
            disk.is_full = True
            await until_beaten(disk, disk.beats + 2)
            assert lease.holds(clock.monotonic())
            clock.advance(timedelta(seconds=TERMS.length_s))
            await until_lost(lease, clock)
            disk.is_full = False

    anyio.run(work)


def test_short_lease_is_kept_however_seldom_heartbeats_were_asked_for() -> None:
    """Who says `lease: 5s` and leaves the heartbeat at ten seconds has workers all the same."""
    disk, clock = Disk(), FakeClock(step=timedelta(microseconds=1))
    terms = LeaseTerms(length_s=0.3, heartbeat_s=10 * PATIENCE_S)

    async def work() -> bool:
        async with leased(WORKER, PROCESS, terms, disk, clock) as lease:
            await until_beaten(disk, 3)
            return lease.holds(clock.monotonic())

    assert anyio.run(work)


def test_worker_that_cannot_sign_off_leaves_all_the_same() -> None:
    disk, clock = Disk(), FakeClock()

    async def work() -> None:
        async with leased(WORKER, PROCESS, LeaseTerms(), disk, clock):
            disk.is_full = True

    anyio.run(work)

    assert [worker.id for worker in disk.reader().live_workers()] == [WORKER]


def test_lease_past_its_deadline_never_holds_again_also_when_its_heartbeat_is_stuck() -> None:
    lease = Lease(deadline=10.0)

    assert lease.holds(9.9)
    assert not lease.holds(10.0)
    assert not lease.holds(9.9)


def test_setting_the_clock_moves_no_lease() -> None:
    disk, clock = Disk(), FakeClock(step=timedelta(microseconds=1))

    async def work() -> bool:
        async with leased(WORKER, PROCESS, TERMS, disk, clock) as lease:
            clock.advance(timedelta(days=-400))
            await until_beaten(disk, 3)
            return lease.holds(clock.monotonic())

    assert anyio.run(work)
