"""Settling: the last line of an execution, and the change that writes the same into the job's rows."""

from __future__ import annotations

from typing import Any

from nightherd.engine.contexts import Stores
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.jobs.running import Stop
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.changes import SettleExecution, SuspendExecution
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.outcome import CANCELLED, Tally
from nightherd.model.jobs.suspension import Suspension
from nightherd.model.journal.event import SystemEvent, describe
from nightherd.model.journal.recollection import Recollection
from nightherd.model.journal.system import End, Suspended
from nightherd.model.limits.login import limit_of


def last_line(stop: Stop) -> SystemEvent:
    """The line an execution ends with. Where several say how a job ended, the last one counts."""
    if isinstance(stop, Suspension):
        return describe(
            Suspended(
                reason=stop.reason.value,
                code=stop.code,
                current_value=stop.current_value,
                current_max=stop.current_max,
                until=stop.until,
                is_named=stop.is_named,
                limit=stop.limit,
                login_limit=stop.login_limit,
                is_below=stop.is_below,
            ),
            stop.message,
        )
    return describe(End(status=stop.status.value, exit_reason=stop.exit_reason.value))


def settling_change(
    job: Job,
    stop: Stop,
    before: Tally,
    recorder: Recorder,
    context: Stores,
    *,
    has_checkpoint: bool,
) -> SettleExecution | SuspendExecution:
    """Return the change that settles or suspends the job; `has_checkpoint` if its last checkpoint was seen to."""
    tally, at = recorder.tally, context.clock.now()
    reached: dict[str, Any] = {
        "job_id": job.id,
        "epoch": job.epoch,
        "at": at,
        "last_seq": recorder.last_seq,
        "total": tally.totals,
        "own": tally.totals - before.totals,
        "answer": tally.answer,
    }
    if isinstance(stop, Suspension):
        limit = limit_of(stop, job.id, at)
        return SuspendExecution(**reached, suspension=stop, login_limit=limit)
    last = None if has_checkpoint else 0
    return SettleExecution(**reached, outcome=stop, last_checkpoint=last)


def record_cancel(job: Job, known: Recollection, record: RepairContext) -> Recollection:
    """Record the cancel of a lost job whose journal has another end already; what the journal says then.

    The cancel came between the journal's last line and the row, and whoever made it was told that it counts.
    """
    outcome = known.outcome
    if job.cancel_requested_at is None or outcome is None:
        return known
    if outcome.status is JobStatus.CANCELLED:
        return known
    execution = generate_execution_id(job.id, job.epoch)
    journal = record.journals.open(job.id, epoch=job.epoch, execution=execution)
    try:
        written = journal.append(last_line(CANCELLED))
        journal.sync()
    finally:
        journal.close()
    return known.add(written)
