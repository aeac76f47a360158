"""Stuck jobs: `running` by their row although nobody runs them. They end as their journal says.

A journal that just stops is a job that was interrupted. Workers that never signed off are given up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from nightherd.engine.doctor.record import (
    KillMarked,
    RepairContext,
    apply_changes,
    is_there,
    list_jobs,
    recollected,
    workers_at_work,
)
from nightherd.engine.jobs.settle import record_cancel
from nightherd.model.change import EndWorker
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId, WorkerId, generate_execution_id
from nightherd.model.jobs.changes import (
    CorrectJob,
    LoseExecution,
    SettleExecution,
    StartExecution,
    SuspendExecution,
)
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.lost import WORKER_GONE
from nightherd.model.jobs.outcome import usage_of
from nightherd.model.journal.recollection import Recollection
from nightherd.model.limits.login import limit_of
from nightherd.model.usage import Totals
from nightherd.model.worker import WorkerStatus
from nightherd.views.jobs import get_job

UNKNOWN = WorkerId("unknown")


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

    What its last execution started is ended first: nothing of it may go on once the row says that it is over.
    """
    job = get_job(record.reader, JobId(finding.job_id or ""))
    if not _is_running(job) or _has_worker(record, job):
        return
    await kill_marked(generate_execution_id(job.id, job.epoch))
    known = recollected(record, job.id)
    job = await caught_up(record, job, known)
    known = record_cancel(job, known, record)
    await apply_changes(record, [ending(job, known, record, max_restarts=0)])


def gone_workers(record: RepairContext) -> Iterator[Finding]:
    """Workers that are there by their row, and whose process is not."""
    for worker in record.reader.live_workers():
        if not is_there(worker, record):
            yield Finding(
                check="workers",
                level=Level.WARNING,
                message=f"worker {worker.id} (pid {worker.pid}) never signed off, and is gone",
                remedy="it is given up",
                is_fixable=True,
            )


async def give_up_workers(record: RepairContext, findings: Sequence[Finding]) -> None:
    """End every worker whose process is gone."""
    at = record.clock.now()
    gone = [worker for worker in record.reader.live_workers() if not is_there(worker, record)]
    await record.state.apply(
        [EndWorker(worker_id=worker.id, status=WorkerStatus.LOST, at=at) for worker in gone]
    )


def ending(
    job: Job,
    known: Recollection,
    record: RepairContext,
    *,
    max_restarts: int,
    auto_resume: bool = True,
) -> SettleExecution | SuspendExecution | LoseExecution:
    """How the running job goes on: as its journal says it ended, or why it waits, else as lost."""
    outcome = known.outcome
    # Killed before its first line: what the journal ends with is the execution before.
    is_unsaid = known.epoch < job.epoch
    if outcome is None and known.suspended is not None and not is_unsaid:
        at = known.last_at or record.clock.now()
        return SuspendExecution(
            job_id=job.id,
            epoch=job.epoch,
            at=at,
            suspension=known.suspended,
            last_seq=known.last_seq,
            total=known.tally.totals,
            own=known.own,
            answer=known.tally.answer,
            login_limit=limit_of(known.suspended, job.id, at),
        )
    if outcome is not None:
        return SettleExecution(
            job_id=job.id,
            epoch=job.epoch,
            at=known.last_at or record.clock.now(),
            outcome=outcome,
            last_seq=known.last_seq,
            last_checkpoint=known.last_checkpoint,
            total=known.tally.totals,
            own=known.own,
            answer=known.tally.answer,
        )
    return LoseExecution(
        job_id=job.id,
        epoch=job.epoch,
        at=record.clock.now(),
        reason=WORKER_GONE,
        max_restarts=max_restarts,
        last_seq=known.last_seq,
        last_checkpoint=known.last_checkpoint,
        # A journal that is lost says nothing of what was used before: the row does.
        total=known.tally.totals if known.last_seq > 0 else _counted(job),
        own=Totals() if is_unsaid else known.own,
        auto_resume=auto_resume,
        last_seen=_last_seen(job, None if is_unsaid else known.last_at, record),
    )


def _last_seen(job: Job, last_event_at: datetime | None, record: RepairContext) -> datetime | None:
    """The last sign of life of the job's execution: its worker's last heartbeat or its last event.

    At least its start, which the change itself sees to; None when nothing at all is known of its worker.
    """
    worker = record.reader.find_worker(job.worker) if job.worker is not None else None
    known = [worker.heartbeat_at] if worker is not None else []
    known += [last_event_at] if last_event_at is not None else []
    return max(known, default=job.started_at)


def _counted(job: Job) -> Totals:
    return Totals(turns=job.turns, messages=job.messages, usage=usage_of(job))


async def caught_up(record: RepairContext, job: Job, known: Recollection) -> Job:
    """The job running at the journal's epoch, where the ledger's last changes were lost."""
    if known.epoch <= job.epoch:
        return job
    owner = known.owners[-1] if known.owners else None
    at = owner.at if owner is not None else record.clock.now()
    if job.status is JobStatus.RUNNING:
        lost = LoseExecution(
            job_id=job.id,
            epoch=job.epoch,
            at=at,
            reason=WORKER_GONE,
            max_restarts=job.restart_count + 1,
            last_seq=job.last_seq,
            total=known.totals_before(job.epoch + 1),
            own=known.totals_before(job.epoch + 1) - known.totals_before(job.epoch),
            last_seen=owner.last_before if owner is not None else None,
        )
        await apply_changes(record, [lost])
        job = get_job(record.reader, job.id)
    if known.epoch > job.epoch + 1:
        behind = replace(job, epoch=known.epoch - 1)
        reason = "the journal is at a later epoch"
        await apply_changes(record, [CorrectJob(expected=job, job=behind, reason=reason)])
    worker = WorkerId(owner.worker) if owner is not None else UNKNOWN
    await apply_changes(record, [StartExecution(job_id=job.id, worker=worker, at=at)])
    return get_job(record.reader, job.id)


def _is_running(job: Job | None) -> bool:
    return job is not None and job.status is JobStatus.RUNNING


def _has_worker(record: RepairContext, job: Job) -> bool:
    return any(
        worker.id == job.worker and is_there(worker, record)
        for worker in record.reader.live_workers()
    )
