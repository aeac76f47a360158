"""Deciding a change: given the rows as they are, which rows it writes, or why it is refused.

This is the one place that knows what a change does. Stores only read the rows asked for and write the
rows given, inside one transaction; so every store means the same by every change, and the rows written
are the images the ledger keeps (INV-TERMINAL, INV-FENCE, INV-ONCE).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from nightherd.model.change import (
    Answer,
    Applied,
    Change,
    RecordRuntimeSession,
    Refused,
    SettleExecution,
    StartExecution,
    SubmitJob,
    Why,
)
from nightherd.model.execution import EXECUTION_LIFECYCLE, Execution, ExecutionStatus
from nightherd.model.ids import ExecutionId, JobId, SessionId, generate_execution_id
from nightherd.model.job import JOB_LIFECYCLE, Job, JobStatus, JobTexts, shorten
from nightherd.model.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionKey,
    SessionStatus,
    can_join,
    status_between_jobs,
)
from nightherd.model.trigger import EXECUTION_WORD


class Rows(Protocol):
    """The rows as they are now, inside the transaction that will write."""

    def job(self, id: JobId) -> Job | None: ...
    def texts(self, job_id: JobId) -> JobTexts | None: ...
    def job_with_dedupe_key(self, key: str) -> Job | None: ...
    def session(self, id: SessionId) -> Session | None: ...
    def current_session(self, key: SessionKey) -> Session | None:
        """The newest session of the key that is not over; None for `fresh_per_job`, which shares none."""

    def execution(self, id: ExecutionId) -> Execution | None: ...
    def next_job_number(self) -> int: ...
    def next_session_number(self) -> int: ...


def decide(change: Change, rows: Rows) -> Answer:
    """What `change` does to `rows`: every row to write, or the reason it is refused. Writes nothing."""
    match change:
        case SubmitJob():
            return _submit(change, rows)
        case StartExecution():
            return _start(change, rows)
        case RecordRuntimeSession():
            return _record_runtime_session(change, rows)
        case SettleExecution():
            return _settle(change, rows)


def _submit(change: SubmitJob, rows: Rows) -> Answer:
    job = change.job
    if job.dedupe_key is not None:
        known = rows.job_with_dedupe_key(job.dedupe_key)
        if known is not None:
            return Refused(
                why=Why.DUPLICATE, message=f"this work is job {known.id} already", job=known
            )
    if rows.job(job.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a job {job.id} already")
    proposed = change.session
    current = rows.current_session(proposed.key)
    if current is not None and can_join(current, proposed):
        joined = replace(job, number=rows.next_job_number(), session_id=current.id)
        return Applied(rows=(joined, change.texts), job=joined)
    if rows.session(proposed.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a session {proposed.id} already")
    begun = replace(proposed, number=rows.next_session_number())
    numbered = replace(job, number=rows.next_job_number(), session_id=begun.id)
    return Applied(rows=(begun, numbered, change.texts), job=numbered)


def _start(change: StartExecution, rows: Rows) -> Answer:
    job = rows.job(change.job_id)
    if job is None:
        return Refused(why=Why.MISSING, message=f"there is no job {change.job_id}")
    if not JOB_LIFECYCLE.allows(job.status, JobStatus.RUNNING):
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    session = rows.session(job.session_id) if job.session_id is not None else None
    if session is not None and not SESSION_LIFECYCLE.allows(session.status, SessionStatus.ACTIVE):
        why = Why.SESSION_BUSY if session.status is SessionStatus.ACTIVE else Why.STATUS
        return Refused(why=why, message=f"session {session.id} is {session.status}", job=job)
    epoch = job.epoch + 1
    started = replace(
        job,
        status=JobStatus.RUNNING,
        epoch=epoch,
        worker=change.worker,
        started_at=job.started_at or change.at,
        runtime_session_id=session.runtime_session_id if session is not None else None,
    )
    execution = Execution(
        id=generate_execution_id(job.id, epoch),
        job_id=job.id,
        epoch=epoch,
        worker=change.worker,
        status=ExecutionStatus.STARTED,
        trigger_type=EXECUTION_WORD[job.trigger_type],
        trigger_id=job.trigger_id or job.id,
        skill=job.agent,
        started_at=change.at,
        repo=change.repo,
        session_id=job.session_id,
        runtime_session_id=started.runtime_session_id,
    )
    if session is None:
        return Applied(rows=(started, execution), job=started)
    active = replace(
        session,
        status=SessionStatus.ACTIVE,
        last_active_at=change.at,
        job_count=session.job_count + (1 if epoch == 1 else 0),
    )
    return Applied(rows=(started, execution, active), job=started)


def _record_runtime_session(change: RecordRuntimeSession, rows: Rows) -> Answer:
    job = _owned(change, rows)
    if isinstance(job, Refused):
        return job
    known = replace(job, runtime_session_id=change.runtime_session_id)
    written: list[Job | Execution | Session] = [known]
    execution = rows.execution(generate_execution_id(job.id, job.epoch))
    if execution is not None:
        written.append(replace(execution, runtime_session_id=change.runtime_session_id))
    session = rows.session(job.session_id) if job.session_id is not None else None
    if session is not None:
        written.append(
            replace(
                session,
                runtime_session_id=change.runtime_session_id,
                last_active_at=change.at,
            )
        )
    return Applied(rows=tuple(written), job=known)


def _settle(change: SettleExecution, rows: Rows) -> Answer:
    job = _owned(change, rows)
    if isinstance(job, Refused):
        return job
    outcome = change.outcome
    usage = change.total.usage
    settled = replace(
        job,
        status=JOB_LIFECYCLE.check(job.status, outcome.status),
        exit_reason=outcome.exit_reason,
        finished_at=change.at,
        turns=change.total.turns,
        messages=change.total.messages,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cost_microusd=usage.cost_microusd,
        summary=shorten(change.answer) if change.answer is not None else job.summary,
        error=shorten(outcome.error) if outcome.error is not None else None,
        error_code=outcome.error_code,
        last_seq=change.last_seq,
    )
    written: list[Job | JobTexts | Execution | Session] = [settled]
    texts = rows.texts(job.id)
    if texts is not None and change.answer is not None:
        written.append(replace(texts, summary=change.answer))
    execution = rows.execution(generate_execution_id(job.id, job.epoch))
    if execution is not None:
        written.append(_finish(execution, change))
    session = rows.session(job.session_id) if job.session_id is not None else None
    if session is not None:
        written.append(_rest(session, job, change))
    return Applied(rows=tuple(written), job=settled)


def _owned(change: RecordRuntimeSession | SettleExecution, rows: Rows) -> Job | Refused:
    """The job if this execution still owns it."""
    job = rows.job(change.job_id)
    if job is None:
        return Refused(why=Why.MISSING, message=f"there is no job {change.job_id}")
    if job.epoch != change.epoch:
        found = f"job {job.id} is at epoch {job.epoch}, not {change.epoch}"
        return Refused(why=Why.FENCED, message=found, job=job)
    if job.status is not JobStatus.RUNNING:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    return job


def _finish(execution: Execution, change: SettleExecution) -> Execution:
    usage = change.own.usage
    return replace(
        execution,
        status=EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.FINISHED),
        finished_at=change.at,
        success=change.outcome.status is JobStatus.COMPLETED,
        error=shorten(change.outcome.error) if change.outcome.error is not None else None,
        turns=change.own.turns,
        duration_ms=(change.at - execution.started_at) // timedelta(milliseconds=1),
        cost_microusd=usage.cost_microusd,
        input_tokens=usage.input_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
        stop_reason=change.outcome.stop_reason,
    )


def _rest(session: Session, job: Job, change: SettleExecution) -> Session:
    """The session once its job has ended; it grows by what the job's row did not count yet."""
    usage = change.own.usage
    return replace(
        session,
        status=SESSION_LIFECYCLE.check(session.status, status_between_jobs(session.mode)),
        last_active_at=change.at,
        turn_count=session.turn_count + change.total.turns - job.turns,
        message_count=session.message_count + change.total.messages - job.messages,
        token_estimate=usage.input_tokens + usage.output_tokens or session.token_estimate,
    )
