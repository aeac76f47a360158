"""Lost executions: how a job whose worker is gone continues, by what its journal says. Shared by rescue and doctor."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.engine.doctor.record import RepairContext, apply_changes
from nightherd.model.ids import WorkerId
from nightherd.model.inbox.item import ABOUT_CALLS
from nightherd.model.inbox.review import ASKING
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
from nightherd.views.jobs.jobs import get_job

UNKNOWN = WorkerId("unknown")


def change_after_loss(
    job: Job,
    known: Recollection,
    record: RepairContext,
    *,
    max_restarts: int,
    auto_resume: bool = True,
) -> SettleExecution | SuspendExecution | LoseExecution:
    """How the running job continues: as its journal says it ended, or why it waits, else as lost."""
    outcome = known.outcome
    # Killed before its first line: what the journal ends with is the execution before.
    is_unsaid = known.epoch < job.epoch
    suspended = None if is_unsaid or _asks(job, known, record) else known.suspended
    if outcome is None and suspended is not None:
        at = known.last_at or record.clock.now()
        return SuspendExecution(
            job_id=job.id,
            epoch=job.epoch,
            at=at,
            suspension=suspended,
            last_seq=known.last_seq,
            total=known.tally.totals,
            own=known.own,
            answer=known.tally.answer,
            login_limit=limit_of(suspended, job.id, at),
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


def _asks(job: Job, known: Recollection, record: RepairContext) -> bool:
    """Whether the execution was lost before the people it waits for were asked: the next one asks them."""
    if known.suspended is None or known.suspended.code not in ASKING:
        return False
    items = record.reader.items_of_job(job.id)
    return not any(item.is_pending and item.kind in ABOUT_CALLS for item in items)


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


async def catch_up_with_journal(record: RepairContext, job: Job, known: Recollection) -> Job:
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
