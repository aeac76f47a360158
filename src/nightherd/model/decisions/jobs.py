"""Jobs and their executions: what submitting, starting, settling, losing and cancelling do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from nightherd.model.agent_state import AgentState, after_job_moved
from nightherd.model.change import (
    Answer,
    Applied,
    CancelJob,
    LoseExecution,
    RecordRuntimeSession,
    Refused,
    Row,
    SettleExecution,
    StartExecution,
    SubmitJob,
    Why,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.execution import EXECUTION_LIFECYCLE, Execution, ExecutionStatus
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.job import (
    JOB_LIFECYCLE,
    STATUS_OF_EXIT,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    shorten,
)
from nightherd.model.money import MicroUsd
from nightherd.model.schedule import ScheduleState, after_job_ended, schedule_id
from nightherd.model.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionMode,
    SessionStatus,
    can_join,
    status_between_jobs,
)
from nightherd.model.trigger import EXECUTION_WORD
from nightherd.model.usage import Totals

INTERRUPTED = "interrupted"
"""The error code of a job that was lost too often."""


def submit(change: SubmitJob, rows: Rows) -> Answer:
    """A new job, in a new session or in the one its key has."""
    job = change.job
    if job.dedupe_key is not None:
        known = rows.job_with_dedupe_key(job.dedupe_key)
        if known is not None:
            found = f"this work is job {known.id} already"
            return Refused(why=Why.DUPLICATE, message=found, job=known)
    if rows.get(Job, job.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a job {job.id} already")
    proposed = change.session
    current = rows.current_session(proposed.key)
    if current is not None and can_join(current, proposed):
        joined = replace(job, number=rows.next_job_number(), session_id=current.id)
        return Applied(rows=(joined, change.texts), job=joined)
    if rows.get(Session, proposed.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a session {proposed.id} already")
    begun = replace(proposed, number=rows.next_session_number())
    numbered = replace(job, number=rows.next_job_number(), session_id=begun.id)
    return Applied(rows=(begun, numbered, change.texts), job=numbered)


def start(change: StartExecution, rows: Rows) -> Answer:
    """The next epoch of a pending job; its session is active from now on, for this job alone."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return _missing(change.job_id)
    if not JOB_LIFECYCLE.allows(job.status, JobStatus.RUNNING):
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    session = _session_of(job, rows)
    if session is not None and not SESSION_LIFECYCLE.allows(session.status, SessionStatus.ACTIVE):
        why = Why.SESSION_BUSY if session.status is SessionStatus.ACTIVE else Why.STATUS
        return Refused(why=why, message=f"session {session.id} is {session.status}", job=job)
    full = _full(change, job.agent, rows)
    if full is not None:
        return Refused(why=Why.FULL, message=full, job=job)
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
    written: list[Row] = [started, execution, _agent_after(started, rows)]
    if session is not None:
        first = epoch == 1
        written.append(
            replace(
                session,
                status=SessionStatus.ACTIVE,
                last_active_at=change.at,
                job_count=session.job_count + (1 if first else 0),
            )
        )
    return Applied(rows=tuple(written), job=started)


def record_runtime_session(change: RecordRuntimeSession, rows: Rows) -> Answer:
    """The runtime's own id of the session, in every row that has a place for it."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    known = replace(job, runtime_session_id=change.runtime_session_id)
    written: list[Row] = [known]
    execution = rows.get(Execution, generate_execution_id(job.id, job.epoch))
    if execution is not None:
        written.append(replace(execution, runtime_session_id=change.runtime_session_id))
    session = _session_of(job, rows)
    if session is not None:
        written.append(
            replace(
                session,
                runtime_session_id=change.runtime_session_id,
                last_active_at=change.at,
            )
        )
    return Applied(rows=tuple(written), job=known)


def settle(change: SettleExecution, rows: Rows) -> Answer:
    """The end of a running job: its totals, its texts, its execution, session, agent and schedule."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    outcome = change.outcome
    settled = replace(
        _counted(job, change.total, change.last_seq),
        status=JOB_LIFECYCLE.check(job.status, outcome.status),
        exit_reason=outcome.exit_reason,
        finished_at=change.at,
        summary=shorten(change.answer) if change.answer is not None else job.summary,
        error=shorten(outcome.error) if outcome.error is not None else None,
        error_code=outcome.error_code,
    )
    written: list[Row] = [settled]
    texts = rows.get(JobTexts, job.id)
    if texts is not None and change.answer is not None:
        written.append(replace(texts, summary=change.answer))
    execution = rows.get(Execution, generate_execution_id(job.id, job.epoch))
    if execution is not None:
        finished = EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.FINISHED)
        done = _ended_execution(
            execution,
            finished,
            change.at,
            change.own,
            success=outcome.status is JobStatus.COMPLETED,
            error=outcome.error,
        )
        written.append(
            replace(
                done,
                stop_reason=outcome.stop_reason,
                api_duration_ms=outcome.api_duration_ms,
            )
        )
    session = _session_of(job, rows)
    if session is not None:
        status = status_between_jobs(session.mode)
        written.append(_rested(session, status, job, change.at, change.total, change.own))
    return Applied(rows=(*written, *_around_ended(settled, change.at, rows)), job=settled)


def lose(change: LoseExecution, rows: Rows) -> Answer:
    """A lost execution: back to the queue, or failed when it happened once too often."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    counted = _counted(job, change.total, change.last_seq)
    written: list[Row] = []
    execution = rows.get(Execution, generate_execution_id(job.id, job.epoch))
    if execution is not None:
        lost = EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.LOST)
        written.append(
            _ended_execution(
                execution, lost, change.at, change.own, success=False, error=change.reason
            )
        )
    is_cancelled = job.cancel_requested_at is not None
    is_over = is_cancelled or job.restart_count >= change.max_restarts
    session = _session_of(job, rows)
    if session is not None and session.status is SessionStatus.ACTIVE:
        status = status_between_jobs(session.mode) if is_over else SessionStatus.PAUSED
        written.append(_rested(session, status, job, change.at, change.total, change.own))
    if is_cancelled:
        ended = _end_without_run(counted, ExitReason.CANCELLED, change.at, None, None)
        return Applied(rows=(ended, *written, *_around_ended(ended, change.at, rows)), job=ended)
    if is_over:
        ended = _end_without_run(
            counted, ExitReason.ERROR, change.at, f"{INTERRUPTED}: {change.reason}", INTERRUPTED
        )
        return Applied(rows=(ended, *written, *_around_ended(ended, change.at, rows)), job=ended)
    waiting = replace(
        counted, status=JobStatus.PENDING, worker=None, restart_count=job.restart_count + 1
    )
    return Applied(rows=(waiting, *written, _agent_after(waiting, rows)), job=waiting)


def cancel(change: CancelJob, rows: Rows) -> Answer:
    """The end of a job that waits; the wish for it of one that runs. Wishing twice is wishing once."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return _missing(change.job_id)
    if job.is_terminal:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    if job.status is JobStatus.RUNNING:
        wished = replace(job, cancel_requested_at=job.cancel_requested_at or change.at)
        return Applied(rows=(wished,), job=wished)
    ended = _end_without_run(job, ExitReason.CANCELLED, change.at, None, None)
    session = _session_of(job, rows)
    over: tuple[Row, ...] = ()
    if session is not None and session.mode is SessionMode.FRESH_PER_JOB:
        over = (
            replace(
                session, status=SESSION_LIFECYCLE.check(session.status, SessionStatus.COMPLETED)
            ),
        )
    return Applied(rows=(ended, *over, *_around_ended(ended, change.at, rows)), job=ended)


def owned(job_id: JobId, epoch: int, rows: Rows) -> Job | Refused:
    """The job if the execution of `epoch` still owns it (INV-FENCE)."""
    job = rows.get(Job, job_id)
    if job is None:
        return _missing(job_id)
    if job.epoch != epoch:
        found = f"job {job.id} is at epoch {job.epoch}, not {epoch}"
        return Refused(why=Why.FENCED, message=found, job=job)
    if job.status is not JobStatus.RUNNING:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    return job


def _full(change: StartExecution, agent: str, rows: Rows) -> str | None:
    """Why no further job may run now, or None."""
    if change.agent_limit is not None and rows.count_running(agent) >= change.agent_limit:
        return f"{change.agent_limit} of {agent}'s jobs run already"
    if change.fleet_limit is not None and rows.count_running() >= change.fleet_limit:
        return f"{change.fleet_limit} jobs run already"
    return None


def _missing(job_id: JobId) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no job {job_id}")


def _session_of(job: Job, rows: Rows) -> Session | None:
    return rows.get(Session, job.session_id) if job.session_id is not None else None


def _agent_after(job: Job, rows: Rows) -> AgentState:
    """The agent's row once `job` stands as it does now."""
    oldest = rows.oldest_running_job(job.agent, besides=job.id)
    if job.status is JobStatus.RUNNING:
        other = rows.get(Job, oldest) if oldest is not None else None
        oldest = job.id if other is None or job.number < other.number else other.id
    state = rows.get(AgentState, job.agent) or AgentState(name=job.agent)
    return after_job_moved(state, job, oldest)


def _around_ended(job: Job, at: datetime, rows: Rows) -> tuple[Row, ...]:
    """The rows that change because `job` has ended: its agent's, and its schedule's."""
    agent = _agent_after(job, rows)
    if job.schedule is None:
        return (agent,)
    schedule = rows.get(ScheduleState, schedule_id(job.agent, job.schedule))
    if schedule is None:
        return (agent,)
    is_busy = rows.has_open_job(job.agent, job.schedule, besides=job.id)
    return (agent, after_job_ended(schedule, job, at, is_busy=is_busy))


def _end_without_run(
    job: Job, reason: ExitReason, at: datetime, error: str | None, code: str | None
) -> Job:
    return replace(
        job,
        status=JOB_LIFECYCLE.check(job.status, STATUS_OF_EXIT[reason]),
        exit_reason=reason,
        suspend_reason=None,
        finished_at=at,
        error=shorten(error) if error is not None else None,
        error_code=code,
    )


def _counted(job: Job, total: Totals, last_seq: int) -> Job:
    """The job with what its whole record comes to."""
    usage = total.usage
    return replace(
        job,
        turns=total.turns,
        messages=total.messages,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cost_microusd=usage.cost_microusd,
        last_seq=last_seq,
    )


def _ended_execution(
    execution: Execution,
    status: ExecutionStatus,
    at: datetime,
    own: Totals,
    *,
    success: bool,
    error: str | None,
) -> Execution:
    usage = own.usage
    return replace(
        execution,
        status=status,
        finished_at=at,
        success=success,
        error=shorten(error) if error is not None else None,
        turns=own.turns,
        duration_ms=(at - execution.started_at) // timedelta(milliseconds=1),
        cost_microusd=usage.cost_microusd,
        input_tokens=usage.input_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
    )


def _rested(
    session: Session, status: SessionStatus, job: Job, at: datetime, total: Totals, own: Totals
) -> Session:
    """The session after an execution; it grows by what the job's row did not count yet."""
    cost = session.cost_microusd + total.usage.cost_microusd - job.cost_microusd
    used = own.usage.input_tokens + own.usage.output_tokens
    return replace(
        session,
        status=SESSION_LIFECYCLE.check(session.status, status),
        last_active_at=at,
        turn_count=session.turn_count + total.turns - job.turns,
        message_count=session.message_count + total.messages - job.messages,
        cost_microusd=MicroUsd(cost),
        token_estimate=used or session.token_estimate,
    )
