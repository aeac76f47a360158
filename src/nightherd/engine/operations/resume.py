"""Resume: the work continues in the session it was done in, or in a branch of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.jobs.settle import job_of
from nightherd.engine.limits.logins import stopped_by
from nightherd.engine.operations.fork import AtCheckpoint
from nightherd.engine.operations.new_job import JobDraft, check_admission, record_job
from nightherd.engine.operations.raise_limits import amend, check_raised, given_before
from nightherd.engine.operations.requests import Resume, ResumeSession
from nightherd.engine.operations.submit import GO_ON, in_fork, in_session
from nightherd.engine.work.on_request import continue_issue, record_issue_job
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Applied, Refused
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import ABOUT_CALLS
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.sessions.order import ahead_text
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.checkpoints import list_bookmarks
from nightherd.views.jobs.jobs import get_job

OPEN = (JobStatus.RUNNING, JobStatus.PENDING)
"""Jobs that continue anyway."""

LOOKED_BACK = 16
"""Jobs of a session that are looked at for one that was resumed under the same key."""

Rescue = Callable[[], Awaitable[object]]


async def resume_job(
    request: Resume, agent: Agent, context: FleetContext, *, rescue: Rescue
) -> Job:
    """Return the job that continues: the same one when it was suspended or interrupted, else a new one.

    From a checkpoint, a job that is suspended right there continues itself; from every other place a new job
    continues in a branch, and the old one stays as it is. The same dedupe key acts once. The limits of a job that
    runs, or waits for a worker anyway, can be raised; `RefusedError` for anything else.
    """
    job = get_job(context.reader, request.job_id)
    if is_done_already(job.id, request.dedupe_key, context):
        return job
    if request.at_checkpoint is not None and not _is_at(job, request.at_checkpoint, context):
        return await _resume_in_fork(job, request.at_checkpoint, request, agent, context)
    texts, given = context.reader.find_texts(job.id), _raised_limits(job, request, context)
    options = texts.overrides if texts is not None else NO_OPTIONS
    check_admission(agent, job.schedule, options.merged(given), context)
    was_running = job.status is JobStatus.RUNNING
    if was_running:
        # Its worker may be gone, and no worker has noticed yet.
        await rescue()
        job = get_job(context.reader, job.id)
    if job.status in OPEN:
        is_interrupted = was_running and job.status is JobStatus.PENDING
        if await _amend(job, request, agent, given, context, is_interrupted=is_interrupted):
            return job
        job = get_job(context.reader, job.id)  # it has come to its limit, or its end, just now
        if job.status in OPEN:
            raise _refused(job, context)
    if job.status is JobStatus.SUSPENDED:
        _check_answered(job, context)
        return await _resume_suspended(job, request, agent, given, context)
    if job.session_id is None:
        raise RefusedError(f"job {job.id} has no session to continue")
    if job.status is JobStatus.COMPLETED and request.prompt is None:
        raise RefusedError(
            f"job {job.id} is completed; to start a new job in its session, give a prompt",
            next_step=NextStep(Action.RESUME_JOB_WITH_PROMPT, job=job.id),
        )
    draft = _draft(request, agent, given)
    draft = await in_session(draft, job.session_id, context, resumed_from=job.id)
    return await _record_continued(draft, job, context)


def is_done_already(job_id: JobId, dedupe_key: str | None, context: Stores) -> bool:
    """Whether a request with that key has resumed the job, or raised its limits, before."""
    texts = context.reader.find_texts(job_id) if dedupe_key is not None else None
    return texts is not None and dedupe_key in texts.overrides.resume_keys


def _raised_limits(job: Job, request: Resume, context: Stores) -> JobOptions:
    """The limits that the job was given before, with those it is given now."""
    if not request.limits:
        return NO_OPTIONS
    return JobOptions(limits={**given_before(job, context.reader), **request.limits})


def _draft(
    request: Resume | ResumeSession, agent: Agent, options: JobOptions = NO_OPTIONS
) -> JobDraft:
    return JobDraft(
        agent=agent,
        prompt=request.prompt if request.prompt is not None else GO_ON,
        overrides=options,
        refuses_held=request.refuses_held,
        dedupe_key=request.dedupe_key,
    )


async def _amend(
    job: Job,
    request: Resume,
    agent: Agent,
    given: JobOptions,
    context: FleetContext,
    *,
    is_interrupted: bool,
) -> bool:
    """Raise the limits of an open job; one that was interrupted can be told something besides.

    False when it is open no longer; `RefusedError` when there is nothing to resume.
    """
    prompt, key = request.prompt, request.dedupe_key
    if not is_interrupted and (given.limits is None or prompt is not None):
        raise _refused(job, context)
    if given.limits is None and prompt is None and key is None:
        return True
    masked = None if prompt is None else str(context.secrets.mask(prompt))
    answer = await amend(job, agent, given, context, prompt=masked, key=key)
    return isinstance(answer, Applied)


async def _resume_suspended(
    job: Job, request: Resume, agent: Agent, given: JobOptions, context: FleetContext
) -> Job:
    check_raised(job, agent, given, context.reader)
    prompt = request.prompt
    change = ResumeJob(
        job_id=job.id,
        at=context.clock.now(),
        prompt=None if prompt is None else str(context.secrets.mask(prompt)),
        overrides=given,
        key=request.dedupe_key,
        lifts=stopped_by(agent, context.environment),
    )
    (answer,) = await context.state.apply([change])
    if isinstance(answer, Refused) and is_done_already(job.id, request.dedupe_key, context):
        return get_job(context.reader, job.id)  # the same request was quicker
    return job_of(answer)


def _check_answered(job: Job, context: Stores) -> None:
    """`RefusedError` for a job that waits for a person: only an answer continues it."""
    if job.suspend_reason is not SuspendReason.APPROVAL:
        return
    for item in context.reader.items_of_job(job.id):
        if item.is_pending and item.kind in ABOUT_CALLS:
            raise RefusedError(
                f"job {job.id} {job.error}",
                next_step=NextStep(Action.ANSWER_INBOX_ITEM, item=item.id),
            )


def _refused(job: Job, context: Stores) -> RefusedError:
    ahead = context.reader.jobs_ahead(job, 1)
    if job.status is JobStatus.PENDING and ahead:
        message = f"job {job.id} waits for its turn: {ahead_text(ahead[0])}"
        return RefusedError(message, next_step=NextStep(Action.SHOW_JOB, job=ahead[0].id))
    if job.status is JobStatus.PENDING:
        return RefusedError(
            f"job {job.id} is already queued", next_step=NextStep(Action.START_WORKER)
        )
    return RefusedError(
        f"job {job.id} is running", next_step=NextStep(Action.FOLLOW_JOB, job=job.id)
    )


def _is_at(job: Job, number: int, context: Stores) -> bool:
    """Whether the job is suspended at that checkpoint; `InvalidValueError` when it has no such checkpoint."""
    checkpoints = list_bookmarks(context.reader, context.journals, job.id)
    numbers = [checkpoint.number for checkpoint in checkpoints]
    if number not in numbers:
        there = ", ".join(map(str, numbers)) or "none"
        raise InvalidValueError(
            f"job {job.id} has no checkpoint {number}; there are {there}",
            next_step=NextStep(Action.LIST_CHECKPOINTS, job=job.id),
        )
    return job.status is JobStatus.SUSPENDED and number == numbers[-1]


async def _resume_in_fork(
    job: Job, number: int, request: Resume, agent: Agent, context: FleetContext
) -> Job:
    """A new job in a branch at the checkpoint; what was said after it is not known to it."""
    if job.status in OPEN:
        raise RefusedError(
            f"job {job.id} is {job.status.value}", next_step=NextStep(Action.CANCEL_JOB, job=job.id)
        )
    if job.session_id is None:
        raise RefusedError(f"job {job.id} has no session to continue")
    draft = _draft(request, agent, _raised_limits(job, request, context))
    place = AtCheckpoint(number=number, job_id=job.id)
    return (await record_job(await in_fork(draft, job.session_id, place, context), context)).job


async def resume_session(
    request: ResumeSession, agent: Agent, context: FleetContext, *, rescue: Rescue
) -> Job:
    """Return the job that continues: a suspended or interrupted one of the session, else a new one in it.

    Without a prompt there is no new one beside an open job or after a completed one: `RefusedError`. With a prompt,
    the new one waits its turn while another job runs. The same dedupe key acts once.
    """
    session_id, key = request.session_id, request.dedupe_key
    jobs = context.reader.jobs_of_session(session_id)
    for place, job in enumerate(reversed(jobs) if key is not None else ()):
        is_recent = place < LOOKED_BACK and is_done_already(job.id, key, context)
        if is_recent or job.dedupe_key == key:
            return job
    last = jobs[-1] if jobs else None
    if last is not None and request.prompt is None:
        if not last.is_terminal:
            return await resume_job(_resume(last, request), agent, context, rescue=rescue)
        if last.status is JobStatus.COMPLETED:
            raise RefusedError(
                f"session {session_id}: its last job {last.id} is completed; to start a new job, give a prompt",
                next_step=NextStep(Action.RESUME_SESSION_WITH_PROMPT, session=session_id),
            )
    elif last is not None and last.status is JobStatus.SUSPENDED:
        # A job that only lost its worker is not asked anything new: what is to be said to it is a job of its own.
        try:
            return await resume_job(_resume(last, request), agent, context, rescue=rescue)
        except RefusedError:
            pass  # it is running already: the new job comes after it
    draft = await in_session(_draft(request, agent), session_id, context)
    if last is not None and request.prompt is None:
        return await _record_continued(draft, last, context)
    return (await record_job(draft, context)).job


async def _record_continued(draft: JobDraft, job: Job, context: FleetContext) -> Job:
    """The job that continues an ended one, with the issue of one that has not done its work."""
    work = None
    if job.status is not JobStatus.COMPLETED:
        work = await continue_issue(job, context, key=draft.dedupe_key)
    return (await record_issue_job(replace(draft, work=work), context)).job


def _resume(job: Job, request: ResumeSession) -> Resume:
    return Resume(
        job_id=job.id,
        prompt=request.prompt,
        refuses_held=request.refuses_held,
        dedupe_key=request.dedupe_key,
    )
