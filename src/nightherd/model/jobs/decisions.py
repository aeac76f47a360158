"""Jobs and their executions: what submitting, starting, settling, losing and cancelling do."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.checkpoints.end_decisions import end_checkpoint
from nightherd.model.decisions.around import (
    agent_after,
    around_ended,
    counted,
    end_without_run,
    ended_execution,
    execution_of,
    missing,
    owned,
    rested,
    session_of,
    session_over,
    status_after_job,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import SessionId
from nightherd.model.jobs.begun_execution import begun_execution
from nightherd.model.jobs.changes import (
    CancelJob,
    LoseExecution,
    SettleExecution,
    StartExecution,
    SubmitJob,
)
from nightherd.model.jobs.job import (
    EXECUTION_LIFECYCLE,
    JOB_LIFECYCLE,
    ExecutionStatus,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    row_text,
)
from nightherd.model.limits.decisions import used_up
from nightherd.model.limits.login import text_of
from nightherd.model.limits.login_decisions import after_start, limit_in_the_way, login_in
from nightherd.model.sessions.changes import ForkSession
from nightherd.model.sessions.decisions import fork
from nightherd.model.sessions.order import ahead_text
from nightherd.model.sessions.order_decisions import job_ahead, refused_if_held, waits_in_a_circle
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionMode,
    SessionStatus,
    is_expired,
    why_not_join,
)
from nightherd.model.workflows.rows import WorkflowRun, is_iteration

INTERRUPTED = "interrupted"
"""The error code of a job that was lost too often."""


def submit(change: SubmitJob, rows: Rows) -> Answer:
    """A new job, in a new session or in the one its key has."""
    job = change.job
    if job.dedupe_key is not None:
        known = rows.job_with_dedupe_key(job.dedupe_key)
        if known is not None:
            found = f"job {known.id} already does this work"
            return Refused(why=Why.DUPLICATE, message=found, job=known)
    if rows.get(Job, job.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a job {job.id} already")
    if change.is_branch:
        return _submit_branch(change, rows)
    if change.into is not None:
        return _submit_into(change, change.into, rows)
    proposed = change.session
    current = rows.current_session(proposed.key)
    note: str | None = None
    over: tuple[Row, ...] = ()
    if current is not None:
        is_used = rows.open_jobs_in(current.id) > 0
        note = why_not_join(current, proposed, job.created_at, is_used=is_used)
        waits_for_it = waits_in_a_circle(job, current, rows) if note is None and is_used else None
        if waits_for_it is not None:
            note = f"session {current.id}: {waits_for_it.id} is in it and waits for this job"
            proposed = replace(proposed, mode=SessionMode.FRESH_PER_JOB)
        if note is None:
            return _join(change, _with_terms_of(current, proposed), rows)
        if is_expired(current, job.created_at) and not is_used:
            over = (replace(current, status=SessionStatus.EXPIRED),)
    if rows.get(Session, proposed.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a session {proposed.id} already")
    number = rows.next_session_number()
    taken = current.place if current is not None else 0
    begun = replace(proposed, number=number, rank=0 if taken < number else taken + 1)
    numbered = replace(job, number=rows.next_job_number(), session_id=begun.id)
    texts = replace(change.texts, session_note=note)
    return Applied(rows=(*over, begun, numbered, texts), job=numbered)


def session_to_join(change: SubmitJob, rows: Rows) -> Session | None:
    """Return the session that the job would join; None when it would begin one."""
    if change.into is not None:
        return rows.get(Session, change.into)
    current = rows.current_session(change.session.key)
    if current is None:
        return None
    is_used = rows.open_jobs_in(current.id) > 0
    at = change.job.created_at
    note = why_not_join(current, change.session, at, is_used=is_used)
    return current if note is None else None


def _submit_into(change: SubmitJob, session_id: SessionId, rows: Rows) -> Answer:
    """The job continues in a session that was chosen for it, and trusted as it is."""
    session = rows.get(Session, session_id)
    if session is None:
        return Refused(why=Why.MISSING, message=f"there is no session {session_id}")
    if session.removed_at is not None or session.status in SESSION_LIFECYCLE.terminal:
        state = "cleaned up" if session.removed_at is not None else session.status.value
        return Refused(why=Why.SESSION_OVER, message=f"session {session_id} is {state}")
    if session.agent != change.job.agent:
        # It came from elsewhere, and belongs from now on to the agent that continues it.
        proposed = change.session
        session = replace(session, agent=proposed.agent, runtime_type=proposed.runtime_type)
    return _join(change, session, rows)


def _submit_branch(change: SubmitJob, rows: Rows) -> Answer:
    """The job and the branch it begins: both are there, or neither."""
    forked = fork(ForkSession(session=change.session), rows)
    if isinstance(forked, Refused):
        return forked
    (session,) = (row for row in forked.rows if isinstance(row, Session))
    return _join(change, session, rows)


def _join(change: SubmitJob, session: Session, rows: Rows) -> Answer:
    held = refused_if_held(session, rows) if change.refuses_held else None
    if held is not None:
        return held
    joined = replace(change.job, number=rows.next_job_number(), session_id=session.id)
    is_new = rows.get(Session, session.id) != session
    return Applied(rows=(*((session,) if is_new else ()), joined, change.texts), job=joined)


def _with_terms_of(current: Session, proposed: Session) -> Session:
    """The session under what the configuration says now."""
    return replace(
        current,
        max_age_s=proposed.max_age_s,
        max_idle_s=proposed.max_idle_s,
        operation=proposed.operation,
    )


def start(change: StartExecution, rows: Rows) -> Answer:
    """The next epoch of a pending job; its session is active from now on, for this job alone.

    Jobs of a session start in the order in which they were submitted: the first that has not ended goes first.
    """
    job = rows.get(Job, change.job_id)
    if job is None:
        return missing(change.job_id)
    if not JOB_LIFECYCLE.allows(job.status, JobStatus.RUNNING):
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    session = session_of(job, rows)
    refused = _not_yet(change, job, session, rows)
    if refused is not None:
        return refused
    epoch = job.epoch + 1
    started = replace(
        job,
        status=JobStatus.RUNNING,
        epoch=epoch,
        worker=change.worker,
        not_before=None,
        started_at=job.started_at or change.at,
        runtime_session_id=session.runtime_session_id if session is not None else None,
    )
    texts = rows.get(JobTexts, job.id)
    run = rows.get(WorkflowRun, job.workflow_run_id) if job.workflow_run_id else None
    execution = begun_execution(change, started, texts, run)
    agent = replace(agent_after(started, rows), login=login_in(change.stopped_by))
    written: list[Row] = [started, execution, agent]
    written += after_start(change.stopped_by, change.at, rows)
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
    return Applied(rows=tuple(written), job=started, texts=texts)


def _not_yet(
    change: StartExecution, job: Job, session: Session | None, rows: Rows
) -> Refused | None:
    """Why a pending job may not start now; None when it may."""
    ahead = job_ahead(job, rows)
    if ahead is not None:
        return Refused(why=Why.SESSION_BUSY, message=ahead_text(ahead), job=job)
    if session is not None and not SESSION_LIFECYCLE.allows(session.status, SessionStatus.ACTIVE):
        why = Why.SESSION_BUSY if session.status is SessionStatus.ACTIVE else Why.STATUS
        return Refused(why=why, message=f"session {session.id} is {session.status}", job=job)
    full = _full(change, job.agent, rows)
    if full is not None:
        return Refused(why=Why.FULL, message=full, job=job)
    limit = limit_in_the_way(change.stopped_by, change.at, rows)
    if limit is not None:
        return Refused(why=Why.RATE_LIMITED, message=text_of(limit), job=job)
    return None


def settle(change: SettleExecution, rows: Rows) -> Answer:
    """The end of a running job: its totals, its texts, its execution, session, agent and schedule.

    A cancel on record decides how it ends: the caller was promised that the job would be cancelled. Any other
    end is refused, so that the journal says it too, first.
    """
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    outcome = change.outcome
    if job.cancel_requested_at is not None and outcome.status is not JobStatus.CANCELLED:
        message = f"job {job.id} was cancelled, and cannot end as {outcome.status}"
        return Refused(why=Why.CANCELLED, message=message, job=job)
    settled = replace(
        counted(job, change.total, change.last_seq),
        status=JOB_LIFECYCLE.check(job.status, outcome.status),
        exit_reason=outcome.exit_reason,
        finished_at=change.at,
        summary=row_text(change.answer) if change.answer is not None else job.summary,
        error=row_text(outcome.error),
        error_code=outcome.error_code,
    )
    written: list[Row] = [settled, *used_up(job, change.total, change.at, rows)]
    texts = rows.get(JobTexts, job.id)
    if texts is not None and change.answer is not None:
        written.append(replace(texts, summary=change.answer))
    execution = execution_of(job, rows)
    if execution is not None:
        finished = EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.FINISHED)
        done = ended_execution(
            execution,
            finished,
            change.at,
            change.own,
            success=outcome.status is JobStatus.COMPLETED,
            error=outcome.error,
        )
        execution = replace(
            done,
            stop_reason=outcome.stop_reason,
            api_duration_ms=outcome.api_duration_ms,
            output_text=change.answer if is_iteration(job) else None,
        )
        written.append(execution)
    if change.last_checkpoint is not None:
        written += end_checkpoint(
            settled, change.at, rows, execution=execution, last_number=change.last_checkpoint
        )
    session = session_of(job, rows)
    if session is not None:
        status = status_after_job(session, rows)
        written.append(rested(session, status, job, change.at, change.total, change.own))
    return Applied(rows=(*written, *around_ended(settled, change.at, rows)), job=settled)


def lose(change: LoseExecution, rows: Rows) -> Answer:
    """A lost execution: back to the queue, or failed when it happened once too often."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    after = counted(job, change.total, change.last_seq)
    written: list[Row] = [*used_up(job, change.total, change.at, rows)]
    execution = execution_of(job, rows)
    if execution is not None:
        lost = EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.LOST)
        # After the last sign of life no worker ran it: that time belongs to the outage, not to the job.
        seen = max(execution.started_at, change.last_seen or change.at)
        ended_at = min(seen, change.at)
        execution = ended_execution(
            execution, lost, ended_at, change.own, success=False, error=change.reason
        )
        written.append(execution)
    is_over = is_last_loss(job, change)
    session = session_of(job, rows)
    if session is not None and session.status is SessionStatus.ACTIVE:
        status = status_after_job(session, rows) if is_over else SessionStatus.PAUSED
        written.append(rested(session, status, job, change.at, change.total, change.own))
    if is_over:
        ended = (
            end_without_run(after, ExitReason.CANCELLED, change.at, None, None)
            if job.cancel_requested_at is not None
            else end_without_run(
                after, ExitReason.ERROR, change.at, _why_given_up(job, change), INTERRUPTED
            )
        )
        written += end_checkpoint(
            ended, change.at, rows, execution=execution, last_number=change.last_checkpoint
        )
        return Applied(rows=(ended, *written, *around_ended(ended, change.at, rows)), job=ended)
    waiting = replace(
        after,
        status=JobStatus.PENDING,
        worker=None,
        restart_count=job.restart_count + (0 if change.is_planned else 1),
    )
    return Applied(rows=(waiting, *written, agent_after(waiting, rows)), job=waiting)


def _why_given_up(job: Job, change: LoseExecution) -> str:
    """Why a job that was lost does not continue by itself."""
    said = f"{INTERRUPTED}: {change.reason.removeprefix(INTERRUPTED).lstrip(': ')}"
    if not change.auto_resume:
        return f"{said}; the agent's session settings do not allow it to resume by itself"
    if change.max_restarts == 0:
        return said
    times, most = job.restart_count + 1, change.max_restarts
    return f"{said}; it was lost {times} times, and max_restarts is {most}"


def is_last_loss(job: Job, change: LoseExecution) -> bool:
    """Whether the job ends with the loss of this execution, instead of waiting for the next."""
    is_given_up = not change.is_planned and (
        job.restart_count >= change.max_restarts or not change.auto_resume
    )
    return job.cancel_requested_at is not None or is_given_up


def cancel(change: CancelJob, rows: Rows) -> Answer:
    """The end of a job that waits; the wish for it of one that runs. Wishing twice is wishing once."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return missing(change.job_id)
    if job.is_terminal:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    if job.status is JobStatus.RUNNING:
        wished = replace(job, cancel_requested_at=job.cancel_requested_at or change.at)
        return Applied(rows=(wished,), job=wished)
    ended = end_without_run(job, ExitReason.CANCELLED, change.at, None, None)
    over = (*end_checkpoint(ended, change.at, rows), *session_over(job, rows))
    return Applied(rows=(ended, *over, *around_ended(ended, change.at, rows)), job=ended)


def _full(change: StartExecution, agent: str, rows: Rows) -> str | None:
    """Why no further job may run now, or None."""
    if change.agent_limit is not None and rows.count_running(agent) >= change.agent_limit:
        return f"{change.agent_limit} of {agent}'s jobs run already"
    if change.fleet_limit is not None and rows.count_running() >= change.fleet_limit:
        return f"{change.fleet_limit} jobs run already"
    return None
