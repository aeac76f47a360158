"""The rows around a job: what its execution, session, agent and schedule become when it moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.agents.state import AgentState, after_job_moved
from nightherd.model.change import Refused, Row, Why
from nightherd.model.checkpoints.end_decisions import end_checkpoint
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import (
    CHILD_WAITS,
    JOB_LIFECYCLE,
    STATUS_OF_EXIT,
    Execution,
    ExecutionStatus,
    ExitReason,
    Job,
    JobStatus,
    SuspendReason,
    row_text,
)
from nightherd.model.limits.limits import COUNTED
from nightherd.model.schedules.schedule import (
    ScheduleState,
    ScheduleStatus,
    after_job_ended,
    schedule_id,
)
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionStatus,
    status_between_jobs,
)
from nightherd.model.units import MicroUsd, elapsed_ms
from nightherd.model.usage import BYTES_PER_TOKEN, Totals

COUNTED_CODES = frozenset(name.code for name in COUNTED)


def owned(job_id: JobId, epoch: int, rows: Rows) -> Job | Refused:
    """The job if the execution of `epoch` still owns it (INV-FENCE)."""
    job = rows.get(Job, job_id)
    if job is None:
        return missing(job_id)
    if job.epoch != epoch:
        found = f"job {job.id} is at epoch {job.epoch}, not {epoch}"
        return Refused(why=Why.FENCED, message=found, job=job)
    if job.status is not JobStatus.RUNNING:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    return job


def missing(job_id: JobId) -> Refused:
    """There is no such job."""
    return Refused(why=Why.MISSING, message=f"there is no job {job_id}")


def session_of(job: Job, rows: Rows) -> Session | None:
    """The session the job is in."""
    return rows.get(Session, job.session_id) if job.session_id is not None else None


def execution_of(job: Job, rows: Rows) -> Execution | None:
    """The job's execution of this epoch."""
    return rows.get(Execution, generate_execution_id(job.id, job.epoch))


def _age(job: Job) -> tuple[datetime, int]:
    """Where a job stands in the order of creation."""
    return job.created_at, job.number


def agent_after(job: Job, rows: Rows) -> AgentState:
    """The agent's row once `job` stands as it does now."""
    oldest = rows.oldest_running_job(job.agent, besides=job.id)
    if job.status is JobStatus.RUNNING:
        other = rows.get(Job, oldest) if oldest is not None else None
        oldest = job.id if other is None or _age(job) < _age(other) else other.id
    state = rows.get(AgentState, job.agent) or AgentState(name=job.agent)
    return after_job_moved(state, job, oldest)


def around_ended(job: Job, at: datetime, rows: Rows) -> tuple[Row, ...]:
    """The rows that change because `job` has ended: its agent's, its schedule's, those of jobs below it and above."""
    below = () if job.status is JobStatus.COMPLETED else (*_cancelled_below(job, at, rows),)
    below = (*below, *_woken_above(job, rows))
    agents = {row.name: row for row in below if isinstance(row, AgentState)}
    agents[job.agent] = agent_after(job, rows)
    around = (*(row for row in below if not isinstance(row, AgentState)), *agents.values())
    if job.schedule is None:
        return around
    schedule = rows.get(ScheduleState, schedule_id(job.agent, job.schedule))
    if schedule is None:
        return around
    is_busy = rows.has_busy_job(job.agent, job.schedule, besides=job.id)
    return (*around, after_job_ended(schedule, job, at, is_busy=is_busy))


def schedule_with(job: Job, rows: Rows) -> tuple[Row, ...]:
    """The row of the job's schedule, if it changes because `job` was suspended or resumed.

    A schedule is running while a job of it runs or waits for a worker.
    """
    if job.schedule is None:
        return ()
    schedule = rows.get(ScheduleState, schedule_id(job.agent, job.schedule))
    if schedule is None or schedule.status is ScheduleStatus.DISABLED:
        return ()
    is_busy = job.status in (JobStatus.PENDING, JobStatus.RUNNING) or rows.has_busy_job(
        job.agent, job.schedule, besides=job.id
    )
    status = ScheduleStatus.RUNNING if is_busy else ScheduleStatus.IDLE
    return () if status is schedule.status else (replace(schedule, status=status),)


def _woken_above(job: Job, rows: Rows) -> Iterator[Row]:
    """The job that waits because `job` did: it continues, in the change that ends `job`."""
    above = rows.get(Job, job.parent_job_id) if job.parent_job_id is not None else None
    if above is not None and above.status is JobStatus.SUSPENDED and _waits_below(above):
        yield resumed(above)
        yield from schedule_with(resumed(above), rows)


def looking_again(job: Job, rows: Rows) -> tuple[Row, ...]:
    """The job that waits because `job` did: it continues and finds what `job` waits for now, maybe for itself."""
    above = rows.get(Job, job.parent_job_id) if job.parent_job_id is not None else None
    is_waiting = above is not None and above.status is JobStatus.SUSPENDED
    if above is None or not is_waiting or above.error_code != CHILD_WAITS:
        return ()
    return (resumed(above), *schedule_with(resumed(above), rows))


def _waits_below(job: Job) -> bool:
    """Whether a suspended job with a child that is open waits because of that one.

    What adds up from turn to turn is met by the job itself only between its calls, when it has none.
    """
    is_own = job.suspend_reason is SuspendReason.LIMIT
    return job.error_code == CHILD_WAITS or (is_own and job.error_code in COUNTED_CODES)


def resumed(job: Job) -> Job:
    """The suspended job, waiting for its next execution."""
    return replace(
        job,
        status=JOB_LIFECYCLE.check(job.status, JobStatus.PENDING),
        suspend_reason=None,
        not_before=None,
        error=None,
        error_code=None,
    )


def _cancelled_below(job: Job, at: datetime, rows: Rows) -> Iterator[Row]:
    """End the child jobs that `job` no longer waits for; request a cancel for those that run.

    In the change that ends `job`, so that no kill comes between the two.
    """
    for child in rows.open_children(job.id):
        if child.status is JobStatus.RUNNING:
            yield replace(child, cancel_requested_at=child.cancel_requested_at or at)
            continue
        ended = end_without_run(child, ExitReason.CANCELLED, at, None, None)
        yield ended
        yield from end_checkpoint(ended, at, rows)
        yield from session_over(ended, rows)
        yield agent_after(ended, rows)
        yield from _cancelled_below(ended, at, rows)


def status_after_job(session: Session, rows: Rows) -> SessionStatus:
    """Where the session stands once one of its open jobs has ended: it is not over while others wait in it."""
    status = status_between_jobs(session.mode)
    is_last = status is not SessionStatus.COMPLETED or rows.open_jobs_in(session.id) <= 1
    return status if is_last else SessionStatus.PAUSED


def session_over(job: Job, rows: Rows) -> tuple[Row, ...]:
    """The session of a job that ended while it waited: over, where no other job may come to be in it."""
    session = session_of(job, rows)
    if session is None or status_after_job(session, rows) is not SessionStatus.COMPLETED:
        return ()
    completed = SESSION_LIFECYCLE.check(session.status, SessionStatus.COMPLETED)
    return (replace(session, status=completed),)


def end_without_run(
    job: Job, reason: ExitReason, at: datetime, error: str | None, code: str | None
) -> Job:
    """End the job from outside its execution."""
    return replace(
        job,
        status=JOB_LIFECYCLE.check(job.status, STATUS_OF_EXIT[reason]),
        exit_reason=reason,
        suspend_reason=None,
        finished_at=at,
        error=row_text(error),
        error_code=code,
    )


def counted(job: Job, total: Totals, last_seq: int) -> Job:
    """The job with the totals of its whole record."""
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


def ended_execution(
    execution: Execution,
    status: ExecutionStatus,
    at: datetime,
    own: Totals,
    *,
    success: bool,
    error: str | None,
) -> Execution:
    """The execution, over, with its result."""
    usage = own.usage
    return replace(
        execution,
        status=status,
        finished_at=at,
        success=success,
        error=row_text(error),
        turns=own.turns,
        duration_ms=elapsed_ms(execution.started_at, at),
        cost_microusd=usage.cost_microusd,
        input_tokens=usage.input_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
    )


def rested(
    session: Session, status: SessionStatus, job: Job, at: datetime, total: Totals, own: Totals
) -> Session:
    """The session after an execution; it grows by what the job's row did not count yet."""
    cost = session.cost_microusd + total.usage.cost_microusd - job.cost_microusd
    return replace(
        session,
        status=SESSION_LIFECYCLE.check(session.status, status),
        last_active_at=at,
        turn_count=session.turn_count + total.turns - job.turns,
        message_count=session.message_count + total.messages - job.messages,
        cost_microusd=MicroUsd(cost),
        token_estimate=_context_tokens(session, total, own),
    )


def _context_tokens(session: Session, total: Totals, own: Totals) -> int:
    """How large the session's conversation is: as last reported, and four bytes to a token since."""
    if total.context_tokens:
        return total.context_tokens + total.unreported_bytes // BYTES_PER_TOKEN
    return session.token_estimate + own.unreported_bytes // BYTES_PER_TOKEN
