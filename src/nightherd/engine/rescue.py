"""Rescue: jobs whose worker is gone go on with another one. Any worker does it for all.

First the worker is given up, which refuses its next heartbeat; then everything its execution started is
killed and seen gone; then the job is settled as its journal says, or waits for its next execution, or ends
when it was lost too often. However many rescue at once, each job is rescued once: the epoch decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nightherd.engine.record import Record, is_there, list_jobs, recollected
from nightherd.engine.stuck import caught_up, ending
from nightherd.errors import RefusedError
from nightherd.model.change import Applied, EndWorker
from nightherd.model.ids import ExecutionId, WorkerId, generate_execution_id
from nightherd.model.job import Job, JobStatus
from nightherd.model.worker import WorkerStatus, is_lease_over

KillMarked = Callable[[ExecutionId], Awaitable[object]]
"""Kills every process that carries the execution's mark and returns once none is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RescueTerms:
    """What a rescuer has to know."""

    boot_id: str
    max_restarts: int
    kill_marked: KillMarked


async def rescue(record: Record, terms: RescueTerms) -> list[Job]:
    """Give up workers whose lease is over, and take care of every job nobody runs; the jobs as they are now."""
    await _give_up(record, terms)
    running = list(list_jobs(record.reader, JobStatus.RUNNING))
    # In this order: a worker is on record before its job runs, and settles the job before it leaves.
    alive = {worker.id for worker in record.reader.live_workers()}
    lost = [job for job in running if WorkerId(job.worker or "") not in alive]
    rescued = [await _rescue(job, record, terms) for job in lost]
    return [job for job in rescued if job is not None]


async def _give_up(record: Record, terms: RescueTerms) -> None:
    now = record.clock.monotonic()
    for worker in record.reader.live_workers():
        over = is_lease_over(
            worker,
            boot_id=terms.boot_id,
            monotonic=now,
            is_process_alive=is_there(worker, record),
        )
        if over:
            change = EndWorker(worker_id=worker.id, status=WorkerStatus.LOST, at=record.clock.now())
            # Refused: it left by itself, or another rescuer was quicker.
            await record.state.apply([change])


async def _rescue(job: Job, record: Record, terms: RescueTerms) -> Job | None:
    await terms.kill_marked(generate_execution_id(job.id, job.epoch))
    try:
        known = recollected(record, job.id)
        job = await caught_up(record, job, known)
        change = ending(job, known, record, max_restarts=terms.max_restarts)
    except RefusedError:
        return None  # something else came first
    (answer,) = await record.state.apply([change])
    return answer.job if isinstance(answer, Applied) else None
