"""Jobs: retry, cancel, and what a program may change about one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.checkpoints.state_files import write_stopped
from nightherd.engine.children import cancel_below
from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.jobs.answer_stream import write_leftover
from nightherd.engine.jobs.begin import header_of
from nightherd.engine.jobs.settle import job_of
from nightherd.engine.operations.agents import check_no_phase
from nightherd.engine.operations.fork import AtEvent, ForkAt
from nightherd.engine.operations.new_job import JobDraft
from nightherd.engine.operations.requests import Cancel, ForkOf, Retry, UpdateJob
from nightherd.engine.work.on_request import continue_issue, record_issue_job
from nightherd.errors import FencedError, JobNotFoundError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer, Refused, Why
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.changes import CancelJob, FailWaiting, ResumeJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import Event, describe, mark_appended
from nightherd.model.schedules.jobs import session_terms
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.jobs import get_job


async def retry_job(request: Retry, agent: Agent, context: FleetContext) -> Job:
    """A new job that asks `agent` for what the ended job was asked; one for each dedupe key.

    It is held to what that one was held to, and is of its schedule and in its channel. It has no parent. The issue that
    the job worked on is the new one's: `RefusedError` where it cannot be.
    """
    draft = replace(
        retry_draft(request.job_id, agent, context),
        dedupe_key=request.dedupe_key,
        refuses_held=request.refuses_held,
    )
    job = get_job(context.reader, request.job_id)
    work = await continue_issue(job, context, key=request.dedupe_key)
    return (await record_issue_job(replace(draft, work=work), context)).job


def retry_draft(job_id: JobId, agent: Agent, context: FleetContext) -> JobDraft:
    """Return the draft of the same work once more; `RefusedError` for a job that has not ended."""
    job, texts = context.reader.find_job(job_id), context.reader.find_texts(job_id)
    if job is None or texts is None:
        raise JobNotFoundError(f"there is no job {job_id}")
    check_no_phase(job)
    if not job.is_terminal:
        raise RefusedError(
            f"job {job_id} is {job.status}", next_step=NextStep(Action.CANCEL_JOB, job=job_id)
        )
    schedule = agent.schedules.get(job.schedule) if job.schedule is not None else None
    session = context.reader.find_session(job.session_id) if job.session_id is not None else None
    return JobDraft(
        agent=agent,
        prompt=texts.prompt,
        is_filled=True,
        inputs=texts.inputs,
        schedule=schedule.name if schedule is not None else None,
        session_terms=session_terms(agent, schedule) if schedule is not None else None,
        channel_id=session.channel_id if session is not None else None,
        overrides=texts.overrides.for_retry(),
        priority=job.priority,
        retries=job.id,
    )


def fork_of_job(job: Job, at: ForkAt | None) -> ForkOf:
    """Return the branch of a job's session at a place of the job, by default at its end.

    `RefusedError` for a job without a session, and for one that has not started.
    """
    if job.session_id is None:
        raise RefusedError(f"job {job.id} has no session to fork")
    if job.status is JobStatus.PENDING and not job.last_seq:
        raise RefusedError(
            f"job {job.id} has not started; there is nothing to fork",
            next_step=NextStep(Action.SHOW_JOB, job=job.id),
        )
    return ForkOf(session_id=job.session_id, at=at or AtEvent(seq=job.last_seq, job_id=job.id))


async def cancel_job(
    request: Cancel, stores: Stores, *, rescue: Callable[[], Awaitable[object]]
) -> Job:
    """Return the job, ended with all below it, or about to be stopped by its worker; `RefusedError` when it had ended."""
    (answer,) = await stores.state.apply([CancelJob(job_id=request.job_id, at=stores.clock.now())])
    return await finish_cancel(request.job_id, answer, stores, rescue=rescue)


async def finish_cancel(
    job_id: JobId, answer: Answer, stores: Stores, *, rescue: Callable[[], Awaitable[object]]
) -> Job:
    """Do what follows a `CancelJob` that had this answer: see `cancel_job`, for those who record more with it."""
    if isinstance(answer, Refused) and answer.why is Why.STATUS:
        raise RefusedError(answer.message, next_step=NextStep(Action.SHOW_JOB, job=job_id))
    job = job_of(answer)
    if not job.is_terminal:
        # A worker that is gone stops nothing: then the job ends here, as cancelled.
        await rescue()
        job = get_job(stores.reader, job_id)
    if job.is_terminal:
        # A job that was waiting for its next execution may have left the text of an answer.
        await to_thread.run_sync(write_leftover, job, stores)
        await cancel_below(job_id, stores)
        await write_stopped(job_id, stores, stores.threads)
    return job


FAILED_BY_PROGRAM = "failed_by_program"
"""The error code of a job that a program declared failed."""


async def update_job(
    request: UpdateJob, record: RepairContext, *, rescue: Callable[[], Awaitable[object]]
) -> None:
    """Set the status to `cancelled`, `failed` or, for a suspended job, `pending`, as the lifecycle allows.

    `RefusedError` for a step that the lifecycle does not have, or that only the worker of the job can make.
    """
    job_id, status = request.job_id, request.status
    if status is JobStatus.CANCELLED:
        await cancel_job(Cancel(job_id=job_id), record, rescue=rescue)
        return
    at = record.clock.now()
    change: ResumeJob | FailWaiting
    if status is JobStatus.PENDING:
        change = ResumeJob(job_id=job_id, at=at)
    elif status is JobStatus.FAILED:
        message = str(record.secrets.mask(request.error or "a program set the job to failed"))
        change = FailWaiting(job_id=job_id, at=at, message=message, code=FAILED_BY_PROGRAM)
    else:
        raise RefusedError(
            f"only a worker can set job {job_id} to {status}",
            hint="a program can set cancelled, failed or pending",
        )
    (answer,) = await record.state.apply([change])
    if isinstance(answer, Refused) and answer.why is Why.STATUS:
        raise RefusedError(
            f"{answer.message}; it cannot become {status}",
            next_step=NextStep(Action.SHOW_JOB, job=job_id),
        )
    job = job_of(answer)
    if job.is_terminal:
        await cancel_below(job_id, record)
        await write_stopped(job_id, record, record.threads)


def append_output(record: RepairContext, job_id: JobId, event: Event, version: str) -> Event:
    """Append `event` to the job's journal and return it as written; it survives a power cut.

    `RefusedError` unless the job has not started yet, or has ended: a job in between resumes from its journal.
    """
    job = get_job(record.reader, job_id)
    _check(job)
    marked = mark_appended(record.secrets.mask_event(event))
    execution = generate_execution_id(job.id, job.epoch)
    try:
        journal = record.journals.open(job.id, epoch=job.epoch, execution=execution)
        try:
            if journal.last_seq == 0:
                _begin(record, job, journal.append, version)
            written = journal.append(marked)
            journal.sync()
        finally:
            journal.close()
    except FencedError as error:
        raise _refused(get_job(record.reader, job_id)) from error
    return written


def _begin(record: RepairContext, job: Job, append: Callable[[Event], Event], version: str) -> None:
    """Write the first line of the journal, which is the job itself."""
    texts = record.reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"there is no job {job.id}")
    session = record.reader.find_session(job.session_id) if job.session_id is not None else None
    append(describe(header_of(job, texts, session, version)))


def _check(job: Job) -> None:
    is_untouched = job.status is JobStatus.PENDING and job.epoch == 0
    if not (is_untouched or job.is_terminal):
        raise _refused(job)


def _refused(job: Job) -> RefusedError:
    if job.status is JobStatus.RUNNING:
        reason = f"worker {job.worker} has it"
    else:
        reason = "it resumes from its output"
    return RefusedError(
        f"cannot append output to job {job.id}: it is {job.status}, and {reason}",
        hint="append before the job starts or after it has ended",
    )
