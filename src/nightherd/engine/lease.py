"""Lease: a worker is alive while it says so. One lease covers all its jobs.

The heartbeat has a thread of its own, so that no job, however busy, can make its worker look dead. A lease
that was not extended in time is lost: others may have taken the jobs over, and this worker stops them.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.to_thread

from nightherd.errors import NightherdError
from nightherd.model.change import Applied, EndWorker, ExtendLease, RegisterWorker
from nightherd.model.ids import WorkerId
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Clock, Process, StateWriter

JOIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long a silent worker counts as alive, and how often it speaks."""

    length_s: float = 30.0
    heartbeat_s: float = 10.0


class Lease:
    """One worker's lease while it lasts."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        """Until when it holds, on the monotonic clock."""
        self._lost = threading.Event()
        self._ended = threading.Event()

    @property
    def is_lost(self) -> bool:
        """Whether it ran out, or somebody gave the worker up: nothing it runs is its own any more."""
        return self._lost.is_set()

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
    worker_id: WorkerId, process: Process, terms: LeaseTerms, state: StateWriter, clock: Clock
) -> AsyncIterator[Lease]:
    """The worker, on record and alive for the length of the block, and signed off after it."""
    at = clock.now()
    lease = Lease(clock.monotonic() + terms.length_s)
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
            await state.apply([leaving])


async def _beat(
    worker_id: WorkerId, lease: Lease, terms: LeaseTerms, state: StateWriter, clock: Clock
) -> None:
    """Extend the lease until the worker leaves; a lease that cannot be extended in time is lost."""
    while not lease.wait_for_end(terms.heartbeat_s):
        began = clock.monotonic()
        deadline = began + terms.length_s
        change = ExtendLease(worker_id=worker_id, deadline=deadline, at=clock.now())
        try:
            (answer,) = await state.apply([change])
        except NightherdError:
            # A full disk, say: it may be better next time, as long as the lease holds.
            if clock.monotonic() + terms.heartbeat_s < lease.deadline:
                continue
            lease.lose()
            return
        if not isinstance(answer, Applied) or clock.monotonic() >= lease.deadline:
            lease.lose()
            return
        lease.deadline = deadline
