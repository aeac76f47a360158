"""Stuck jobs: `running` by their row although no worker runs them. They end as their journal says.

A journal that just stops is a job that was interrupted. Workers that never signed off are given up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightherd.engine.doctor.record import (
    KillMarked,
    RepairContext,
    apply_changes,
    is_there,
    list_jobs,
    recollected,
    workers_at_work,
)
from nightherd.engine.jobs.lost_execution import catch_up_with_journal, change_after_loss
from nightherd.engine.jobs.settle import record_cancel
from nightherd.model.change import EndWorker
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.worker import WorkerStatus
from nightherd.views.jobs.jobs import get_job


def stuck_jobs(record: RepairContext) -> Iterator[Finding]:
    """Jobs that are `running` by their row although their worker is gone."""
    running = list(list_jobs(record.reader, JobStatus.RUNNING))
    # In this order: a worker is on record before its job runs, and settles the job before it leaves.
    alive = {worker.id for worker in workers_at_work(record)}
    for job in running:
        if job.worker not in alive and _is_running(record.reader.find_job(job.id)):
            yield Finding(
                check="stuck",
                level=Level.PROBLEM,
                message=f"job {job.id} is running by its row, and its worker is gone",
                job_id=job.id,
                remedy="settled as its journal says, else ended as interrupted",
                is_fixable=True,
            )


async def end_stuck_jobs(record: RepairContext, kill_marked: KillMarked, finding: Finding) -> None:
    """End a stuck job as its journal says, or as interrupted where the journal just stops.

    What its last execution started is ended first: nothing of it may continue once the row says that it is over.
    """
    job = get_job(record.reader, JobId(finding.job_id or ""))
    if not _is_running(job) or _has_worker(record, job):
        return
    await kill_marked(generate_execution_id(job.id, job.epoch))
    known = recollected(record, job.id)
    job = await catch_up_with_journal(record, job, known)
    known = record_cancel(job, known, record)
    await apply_changes(record, [change_after_loss(job, known, record, max_restarts=0)])


def gone_workers(record: RepairContext) -> Iterator[Finding]:
    """Workers that are there by their row, and whose process is not."""
    for worker in record.reader.live_workers():
        if not is_there(worker, record):
            yield Finding(
                check="workers",
                level=Level.WARNING,
                message=f"worker {worker.id} (pid {worker.pid}) never signed off, and is gone",
                remedy="it is abandoned",
                is_fixable=True,
            )


async def give_up_workers(record: RepairContext, findings: Sequence[Finding]) -> None:
    """End every worker whose process is gone."""
    at = record.clock.now()
    gone = [worker for worker in record.reader.live_workers() if not is_there(worker, record)]
    await record.state.apply(
        [EndWorker(worker_id=worker.id, status=WorkerStatus.LOST, at=at) for worker in gone]
    )


def _is_running(job: Job | None) -> bool:
    return job is not None and job.status is JobStatus.RUNNING


def _has_worker(record: RepairContext, job: Job) -> bool:
    return any(
        worker.id == job.worker and is_there(worker, record)
        for worker in record.reader.live_workers()
    )
