"""Presence: a worker is on record while it works, so that others can tell whether it still is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from nightherd.engine.workshop import Workshop
from nightherd.model.change import EndWorker, RegisterWorker
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Process

LEASE_S = 10 * 365 * 24 * 3600.0
"""The process itself is the evidence: a worker on this machine is gone when its process is."""


@asynccontextmanager
async def presence(workshop: Workshop, process: Process) -> AsyncIterator[None]:
    """The workshop's worker, registered at the beginning and signed off at the end of the block."""
    at = workshop.clock.now()
    worker = Worker(
        id=workshop.worker,
        status=WorkerStatus.ALIVE,
        host=process.host,
        pid=process.pid,
        process_started=process.started,
        boot_id=process.boot_id,
        deadline=workshop.clock.monotonic() + LEASE_S,
        started_at=at,
        heartbeat_at=at,
    )
    await workshop.state.apply([RegisterWorker(worker=worker)])
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await workshop.state.apply(
                [
                    EndWorker(
                        worker_id=workshop.worker,
                        status=WorkerStatus.LEFT,
                        at=workshop.clock.now(),
                    )
                ]
            )
