"""Settling a job: its hooks, the last line of an execution, and the change that writes the same into the job's rows."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.limits.guard import Stop
from nightherd.errors import FencedError, JobNotFoundError, NotYetError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.changes import LoseExecution, SettleExecution, SuspendExecution
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.outcome import CANCELLED, Tally
from nightherd.model.journal.event import SystemEvent, describe
from nightherd.model.journal.recollection import Recollection
from nightherd.model.journal.system import End, Suspension
from nightherd.model.limits.login import limit_of
from nightherd.ports import CommandContainer


def last_line(stop: Stop) -> SystemEvent:
    """The line an execution ends with. Where several say how a job ended, the last one counts."""
    if isinstance(stop, Suspension):
        return describe(msgspec.structs.replace(stop, message=""), stop.message)
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


async def run_hooks(
    job: Job,
    agent: Agent,
    stop: Stop,
    recorder: Recorder,
    context: FleetContext,
    container: CommandContainer | None = None,
) -> Stop:
    """Run the hooks of a job that has ended or waits; return how it stands then: a hook can fail it."""
    tally = recorder.tally
    standing = replace(
        job,
        status=JobStatus.SUSPENDED if isinstance(stop, Suspension) else stop.status,
        exit_reason=None if isinstance(stop, Suspension) else stop.exit_reason,
        suspend_reason=stop.reason if isinstance(stop, Suspension) else None,
        error=stop.message if isinstance(stop, Suspension) else stop.error,
        error_code=stop.code if isinstance(stop, Suspension) else stop.error_code,
        finished_at=context.clock.now(),
        turns=tally.turns,
        messages=tally.messages,
        input_tokens=tally.usage.input_tokens,
        output_tokens=tally.usage.output_tokens,
        cache_creation_input_tokens=tally.usage.cache_creation_input_tokens,
        cache_read_input_tokens=tally.usage.cache_read_input_tokens,
        cost_microusd=tally.usage.cost_microusd,
        runtime_session_id=tally.runtime_session_id or job.runtime_session_id,
    )
    changed = await context.hooks.after(
        standing,
        agent,
        context,
        record=recorder.record,
        answer=tally.answer,
        container=container,
    )
    return changed if changed is not None else stop


def hand_over_change(
    job: Job, before: Tally, recorder: Recorder, context: Stores, reason: str
) -> LoseExecution:
    """Return the change by which a worker gives a job back."""
    tally = recorder.tally
    return LoseExecution(
        job_id=job.id,
        epoch=job.epoch,
        at=context.clock.now(),
        reason=reason,
        max_restarts=0,
        last_seq=recorder.last_seq,
        total=tally.totals,
        own=tally.totals - before.totals,
        is_planned=True,
    )


def record_cancel(job: Job, known: Recollection, record: RepairContext) -> Recollection:
    """Record the cancel of a lost job whose journal has another end already; what the journal says then.

    The cancel came between the journal's last line and the row, and its caller was promised that it counts.
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


def job_of(answer: Answer) -> Job:
    """Return the job an answer is about; raise what a refusal means."""
    match answer:
        case Applied(job=Job() as job):
            return job
        case Applied():
            raise JobNotFoundError("the change was not about a job")
        case Refused(why=Why.MISSING, message=message):
            raise JobNotFoundError(message)
        case Refused(why=Why.FENCED, message=message):
            raise FencedError(message)
        case Refused(why=Why.SESSION_BUSY | Why.FULL | Why.RATE_LIMITED, message=message):
            raise NotYetError(message)
        case Refused(message=message):
            raise RefusedError(message)
