"""Suspending and resuming: a job that stops without ending, and continues from there."""

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
    looking_again,
    missing,
    owned,
    rested,
    resumed,
    schedule_with,
    session_of,
    session_over,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import ABOUT_CALLS
from nightherd.model.inbox.review import ASKING
from nightherd.model.jobs.changes import FailSuspended, FailWaiting, ResumeJob, SuspendExecution
from nightherd.model.jobs.job import (
    EXECUTION_LIFECYCLE,
    JOB_LIFECYCLE,
    ExecutionStatus,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    SuspendReason,
    row_text,
)
from nightherd.model.jobs.options import FollowUp
from nightherd.model.jobs.overrides import AmendJob, is_raised
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.decisions import used_up
from nightherd.model.limits.login_decisions import lifted, recorded
from nightherd.model.sessions.session import SessionStatus


def suspend(change: SuspendExecution, rows: Rows) -> Answer:
    """The running job waits; its session does too. A wish to cancel is fulfilled instead.

    One that was to wait for a child which has ended meanwhile, for people who have answered, or at a limit that was
    raised meanwhile, waits only for its next execution. One that waits because this one did looks again for what.
    """
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    is_cancelled = job.cancel_requested_at is not None
    why = change.suspension
    written: list[Row] = [*used_up(job, change.total, change.at, rows)]
    execution = execution_of(job, rows)
    if execution is not None:
        finished = EXECUTION_LIFECYCLE.check(execution.status, ExecutionStatus.FINISHED)
        execution = ended_execution(
            execution, finished, change.at, change.own, success=False, error=why.message
        )
        written.append(execution)
    session = session_of(job, rows)
    if session is not None and session.status is SessionStatus.ACTIVE:
        written.append(
            rested(session, SessionStatus.PAUSED, job, change.at, change.total, change.own)
        )
    if change.login_limit is not None:
        written.append(recorded(change.login_limit, rows))
    after = counted(job, change.total, change.last_seq)
    if is_cancelled:
        ended = end_without_run(after, ExitReason.CANCELLED, change.at, None, None)
        written += end_checkpoint(ended, change.at, rows, execution=execution)
        return Applied(rows=(ended, *written, *around_ended(ended, change.at, rows)), job=ended)
    waiting = replace(
        after,
        status=JOB_LIFECYCLE.check(job.status, JobStatus.SUSPENDED),
        suspend_reason=why.reason,
        not_before=why.until,
        worker=None,
        summary=row_text(change.answer) if change.answer is not None else job.summary,
        error=row_text(why.message),
        error_code=why.code,
    )
    texts = rows.get(JobTexts, job.id)
    is_over = why.ends_with_children and not rows.open_children(job.id)
    is_over = is_over or _is_answered(why, job.id, rows)
    if is_over or (texts is not None and is_raised(why, texts.overrides)):
        waiting = resumed(waiting)
    else:
        written += looking_again(waiting, rows)
    written += schedule_with(waiting, rows)
    return Applied(rows=(waiting, *written, agent_after(waiting, rows)), job=waiting)


def _is_answered(why: Suspension, job_id: JobId, rows: Rows) -> bool:
    """Whether the job was to wait for people who have answered meanwhile."""
    if why.code not in ASKING:
        return False
    return not any(item.kind in ABOUT_CALLS for item in rows.pending_items(job_id))


def resume(change: ResumeJob, rows: Rows) -> Answer:
    """The suspended job waits for its next execution, with its new prompt and limits."""
    job = _suspended(change.job_id, rows)
    if isinstance(job, Refused):
        return job
    if change.only_due and (job.not_before is None or job.not_before > change.at):
        return Refused(why=Why.TOO_EARLY, message=f"job {job.id} waits on", job=job)
    waiting = resumed(job)
    written: list[Row] = [waiting]
    if job.suspend_reason is SuspendReason.RATE_LIMIT:
        written += lifted(change.lifts, change.at, rows)
    texts = rows.get(JobTexts, job.id)
    if texts is not None:
        options = texts.overrides.merged(change.overrides).with_resume_key(change.key)
        if change.prompt is not None:
            options = replace(
                options, follow_up=FollowUp(text=change.prompt, after_epoch=job.epoch)
            )
        if options != texts.overrides:
            written.append(replace(texts, overrides=options))
    written += schedule_with(waiting, rows)
    return Applied(rows=(*written, agent_after(waiting, rows)), job=waiting)


def amend(change: AmendJob, rows: Rows) -> Answer:
    """Raise the limits of a queued or running job; its worker re-reads them before it suspends the job."""
    job, texts = rows.get(Job, change.job_id), rows.get(JobTexts, change.job_id)
    if job is None or texts is None:
        return missing(change.job_id)
    is_running = job.status is JobStatus.RUNNING and change.prompt is None
    if job.status is not JobStatus.PENDING and not is_running:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status.value}", job=job)
    options = texts.overrides.with_resume_key(change.key)
    if change.limits:
        options = replace(options, limits={**(options.limits or {}), **change.limits})
    if change.prompt is not None:
        follow_up = FollowUp(text=change.prompt, after_epoch=job.epoch)
        options = replace(options, follow_up=follow_up)
    return Applied(rows=(replace(texts, overrides=options),), job=job)


def fail(change: FailSuspended, rows: Rows) -> Answer:
    """The end of a job that waits: what it waits for does not come."""
    job = _suspended(change.job_id, rows)
    if isinstance(job, Refused):
        return job
    ended = end_without_run(job, ExitReason.LIMIT, change.at, change.message, job.error_code)
    over = (*end_checkpoint(ended, change.at, rows), *session_over(job, rows))
    return Applied(rows=(ended, *over, *around_ended(ended, change.at, rows)), job=ended)


def fail_waiting(change: FailWaiting, rows: Rows) -> Answer:
    """End a pending or suspended job as failed; the worker of a running one decides how that ends."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return missing(change.job_id)
    if job.status not in (JobStatus.PENDING, JobStatus.SUSPENDED):
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    ended = end_without_run(job, ExitReason.ERROR, change.at, change.message, change.code)
    over = (*end_checkpoint(ended, change.at, rows), *session_over(job, rows))
    return Applied(rows=(ended, *over, *around_ended(ended, change.at, rows)), job=ended)


def _suspended(job_id: JobId, rows: Rows) -> Job | Refused:
    job = rows.get(Job, job_id)
    if job is None:
        return missing(job_id)
    if job.status is not JobStatus.SUSPENDED:
        return Refused(why=Why.STATUS, message=f"job {job.id} is {job.status}", job=job)
    return job
