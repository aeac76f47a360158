"""Oversight: who wants a running job to end, and what a lost lease does to all of them."""

from __future__ import annotations

import anyio
import pytest

from engine.bench import Bench
from engine.yard import PATIENCE_S, Yard, until
from nightherd.engine.jobs.oversight import Stopper, oversee
from nightherd.errors import StateError
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import ExitReason


def test_only_the_job_that_somebody_wants_to_end_is_stopped() -> None:
    yard = Yard()
    worker = yard.bench.context.worker
    unwanted, wanted = yard.taken(worker), yard.taken(worker)
    elsewhere = yard.taken(yard.register("worker-otheraaa"))
    running: dict[JobId, Stopper] = {}

    async def go() -> None:
        running.update((job.id, Stopper()) for job in (unwanted, wanted))
        at = yard.bench.clock.now()
        await yard.bench.store.apply(
            [CancelJob(job_id=job.id, at=at) for job in (unwanted, elsewhere)]
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(oversee, running, yard.bench.context)
            await until(lambda: running[unwanted.id].reason)
            tasks.cancel_scope.cancel()

    anyio.run(go)

    assert running[unwanted.id].reason is ExitReason.CANCELLED
    assert running[wanted.id].reason is None


def test_every_job_is_abandoned_once_the_deadline_has_passed() -> None:
    bench = Bench()
    job = bench.submit().job
    running: dict[JobId, Stopper] = {}

    async def go() -> None:
        running[job.id] = Stopper()
        bench.lease.extend(bench.clock.monotonic() + 0.003)
        with anyio.fail_after(PATIENCE_S):
            await oversee(running, bench.context)

    anyio.run(go)

    assert running[job.id].is_abandoned
    assert running[job.id].reason is None


def test_state_that_cannot_be_read_for_a_moment_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    job = bench.submit().job
    running: dict[JobId, Stopper] = {}
    asked: list[str] = []

    def refusing(worker: str):  # type: ignore[no-untyped-def]
        asked.append(worker)
        if len(asked) == 1:
            raise StateError("the disk is gone")
        return [job.id]

    monkeypatch.setattr(bench.reader, "jobs_to_cancel", refusing)

    async def go() -> None:
        running[job.id] = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(oversee, running, bench.context)
            await until(lambda: running[job.id].reason)
            tasks.cancel_scope.cancel()

    anyio.run(go)

    assert len(asked) >= 2
