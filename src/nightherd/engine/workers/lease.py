"""Lease: a worker is alive while it says so. One lease covers all its jobs.

The heartbeat has a thread of its own, so that no job, however busy, can make its worker look dead. A lease
that was not extended in time is lost: others may have taken the jobs over, and this worker stops them.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import msgspec

from nightherd.errors import NightherdError
from nightherd.model.change import Applied, EndWorker, ExtendLease, RegisterWorker
from nightherd.model.ids import WorkerId
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Clock, Process, StateWriter

JOIN_S = 10.0
BEATS_IN_A_LEASE = 3
"""At least so many, whatever was asked for: a lease that is shorter than its heartbeat would always be lost."""
SHORTEST_WAIT_S = 0.02
"""Between two tries to extend a lease that is about to run out."""


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How long a silent worker counts as alive, and how often it speaks."""

    length_s: float = 30.0
    heartbeat_s: float = 10.0

    @property
    def every_s(self) -> float:
        """Between two heartbeats: as it was asked for, but so that one may be missed and the lease is kept."""
        return min(self.heartbeat_s, self.length_s / BEATS_IN_A_LEASE)


class Lease:
    """One worker's lease while it lasts; `on_extended` hears of every deadline, the first one too.

    It is called in the heartbeat's thread and must not raise.
    """

    def __init__(
        self, deadline: float, on_extended: Callable[[float], None] = lambda deadline: None
    ) -> None:
        self.deadline = deadline
        """Until when it holds, on the monotonic clock."""
        self.failure: NightherdError | None = None
        """Why it could not be extended the last time, if it could not: a full disk, say."""
        self._on_extended = on_extended
        on_extended(deadline)
        self._lost = threading.Event()
        self._ended = threading.Event()

    def holds(self, monotonic: float) -> bool:
        """Whether it is good at that time. One that ran out, or was given up, never is again.

        The clock decides, not the heartbeat: that may be stuck, and others do not wait for it.
        """
        if monotonic >= self.deadline:
            self._lost.set()
        return not self._lost.is_set()

    def extend(self, deadline: float) -> None:
        """It holds until then."""
        self.deadline = deadline
        self._on_extended(deadline)

    def lose(self) -> None:
        """It is over before its time."""
        self._lost.set()

    def end(self) -> None:
        """The worker leaves; no heartbeat is needed any more."""
        self._ended.set()

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether the worker left within that time."""
        return self._ended.wait(timeout_s)


@asynccontextmanager
async def leased(
    worker_id: WorkerId,
    process: Process,
    terms: LeaseTerms,
    state: StateWriter,
    clock: Clock,
    *,
    on_extended: Callable[[float], None] = lambda deadline: None,
) -> AsyncIterator[Lease]:
    """The worker, on record and alive for the length of the block, and signed off after it."""
    at = clock.now()
    lease = Lease(clock.monotonic() + terms.length_s, on_extended)
    worker = Worker(
        id=worker_id,
        status=WorkerStatus.ALIVE,
        host=process.host,
        pid=process.pid,
        process_started=process.started,
        boot_id=process.boot_id,
        deadline=lease.deadline,
        started_at=at,
        heartbeat_at=at,
    )
    await state.apply([RegisterWorker(worker=worker)])
    thread = threading.Thread(
        target=anyio.run,
        args=(_beat, worker_id, lease, terms, state, clock),
        name="heartbeat",
        daemon=True,
    )
    thread.start()
    try:
        yield lease
    finally:
        lease.end()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, JOIN_S)
            leaving = EndWorker(worker_id=worker_id, status=WorkerStatus.LEFT, at=clock.now())
            with suppress(NightherdError):  # other workers find its process gone
                await state.apply([leaving])


async def _beat(
    worker_id: WorkerId, lease: Lease, terms: LeaseTerms, state: StateWriter, clock: Clock
) -> None:
    """Extend the lease until the worker leaves; a lease that cannot be extended in time is lost."""
    wait_s = terms.every_s
    while not lease.wait_for_end(wait_s):
        if not lease.holds(clock.monotonic()):
            return  # others may have its jobs: to extend it now would only keep them from rescuing the rest
        deadline = clock.monotonic() + terms.length_s
        change = ExtendLease(worker_id=worker_id, deadline=deadline, at=clock.now())
        try:
            (answer,) = await state.apply([change])
        except NightherdError as error:
            lease.failure = error
            # A full disk, say: it may be better soon, and as long as the lease holds nothing is lost.
            left_s = lease.deadline - clock.monotonic()
            if not lease.holds(clock.monotonic()):
                return
            wait_s = min(terms.every_s, max(left_s / 4, SHORTEST_WAIT_S))
            continue
        lease.failure = None
        if not isinstance(answer, Applied):
            lease.lose()
        if not lease.holds(clock.monotonic()):
            return
        lease.extend(deadline)
        wait_s = terms.every_s


class Beats:
    """Moments, counted from the first question on: two processes have theirs at different times, and take turns.

    `now` is the time by which the event loop sleeps.
    """

    def __init__(self, now: Callable[[], float] = anyio.current_time) -> None:
        self._now = now
        self._begun: float | None = None

    def left_s(self, every_s: float) -> float:
        """Seconds to the next moment of those that are `every_s` apart: some, and never more than that.

        Moments that are a multiple of others apart fall on some of theirs.
        """
        now = self._now()
        if self._begun is None:
            self._begun = now
        return every_s - (now - self._begun) % every_s

    async def wait(self, every_s: float) -> None:
        """Until the next of them."""
        await anyio.sleep(self.left_s(every_s))
