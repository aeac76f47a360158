"""Resuming and forking as jobs: the work goes on in the session it was done in, or in a branch of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.jobs.settle import job_of
from nightherd.engine.limits.logins import stopped_by
from nightherd.engine.operations.fork import (
    AtCheckpoint,
    AtLastTurn,
    Branch,
    ForkAt,
    ForkPoint,
    find_point,
    fork_session,
)
from nightherd.engine.operations.raise_limits import amend, check_raised
from nightherd.engine.operations.submit import (
    SubmitRequest,
    Submitted,
    check_admission,
    session_key_of,
    submit,
)
from nightherd.engine.sessions.import_turns import told
from nightherd.errors import InvalidValueError, RefusedError, UsageError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Applied, Refused
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import Job, JobStatus, TriggerType
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.sessions.order import ahead_text
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionMode
from nightherd.next_step import Action, NextStep
from nightherd.views.checkpoints import list_bookmarks
from nightherd.views.jobs import get_job
from nightherd.views.sessions import get_session

GO_ON = "Go on from where you left off."
"""What a job that goes on in an old session is asked when nothing else is said."""

OPEN = (JobStatus.RUNNING, JobStatus.PENDING)
"""Jobs that go on anyway."""

LOOKED_BACK = 16
"""Jobs of a session that are looked at for one that was resumed under the same key."""

Rescue = Callable[[], Awaitable[object]]


class ResumeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the work that goes on is asked, and allowed, besides."""

    prompt: str | None = None
    overrides: JobOptions = NO_OPTIONS
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    priority: int = 0
    refuses_held: bool = False
    """As for `SubmitRequest`."""


async def resume_job(
    job_id: JobId,
    agent: Agent,
    wish: ResumeOptions,
    context: FleetContext,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on: the same one when it was suspended or interrupted, a new one when it had ended.

    A new one is made once for each dedupe key. One that runs, or waits for a worker anyway, can be given more to
    use; `RefusedError` for anything else.
    """
    job = get_job(context.reader, job_id)
    texts = context.reader.find_texts(job_id)
    if is_done_already(job_id, dedupe_key, context):
        return job
    options = texts.overrides if texts is not None else NO_OPTIONS
    check_admission(agent, job.schedule, options.merged(wish.overrides), context)
    was_running = job.status is JobStatus.RUNNING
    if was_running:
        # Its worker may be gone, and nobody has noticed yet.
        await rescue()
        job = get_job(context.reader, job_id)
    masked = None if wish.prompt is None else str(context.secrets.mask(wish.prompt))
    if job.status in OPEN:
        is_interrupted = was_running and job.status is JobStatus.PENDING
        if not is_interrupted and (wish.overrides.limits is None or masked is not None):
            raise _refused(job, context)
        if wish.overrides.limits is None and masked is None and dedupe_key is None:
            return job
        answer = await amend(job, agent, wish.overrides, context, prompt=masked, key=dedupe_key)
        if isinstance(answer, Applied):
            return job
        job = get_job(context.reader, job_id)  # it has come to its limit, or its end, just now
        if job.status in OPEN:
            raise _refused(job, context)
    if job.status is JobStatus.SUSPENDED:
        check_raised(job, agent, wish.overrides, context.reader)
        change = ResumeJob(
            job_id=job_id,
            at=context.clock.now(),
            prompt=masked,
            overrides=wish.overrides,
            key=dedupe_key,
            lifts=stopped_by(agent, context.environment),
        )
        (answer,) = await context.state.apply([change])
        if isinstance(answer, Refused) and is_done_already(job_id, dedupe_key, context):
            return get_job(context.reader, job_id)  # the same request was quicker
        return job_of(answer)
    if job.session_id is None:
        raise RefusedError(f"job {job_id} has no session to continue")
    if job.status is JobStatus.COMPLETED and wish.prompt is None:
        raise RefusedError(
            f"job {job_id} is completed; to start a new job in its session, give a prompt",
            next_step=NextStep(Action.RESUME_JOB_WITH_PROMPT, job=job_id),
        )
    submitted = await continue_session(
        job.session_id, agent, wish, context, resumed_from=job_id, dedupe_key=dedupe_key
    )
    return submitted.job


def is_done_already(job_id: JobId, dedupe_key: str | None, context: Stores) -> bool:
    """Whether a request with that key has resumed the job, or raised its limits, before."""
    texts = context.reader.find_texts(job_id) if dedupe_key is not None else None
    return texts is not None and dedupe_key in texts.overrides.resume_keys


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


async def continue_session(
    session_id: SessionId,
    agent: Agent,
    wish: ResumeOptions,
    context: FleetContext,
    *,
    resumed_from: JobId | None = None,
    dedupe_key: str | None = None,
) -> Submitted:
    """A new job in that session, or, when the session is over and read-only, in a branch of its end."""
    session = await told(get_session(context.reader, session_id), context)
    _check_agent(session, agent, context)
    if resumed_from is None:
        jobs = context.reader.jobs_of_session(session_id)
        resumed_from = jobs[-1].id if jobs else None
    is_over = session.status in SESSION_LIFECYCLE.terminal or session.removed_at is not None
    branch = find_branch(session, None, context) if is_over else None
    request = _request(agent, wish, session, branch, dedupe_key)
    return await submit(replace(request, resumed_from=resumed_from), context)


async def run_fork(
    session_id: SessionId,
    at: ForkAt | None,
    agent: Agent,
    wish: ResumeOptions,
    context: FleetContext,
    *,
    dedupe_key: str | None = None,
) -> Submitted:
    """A new job in a new branch of that session; it knows which job wrote the place it branches from."""
    session = await told(get_session(context.reader, session_id), context)
    _check_agent(session, agent, context)
    branch = find_branch(session, at, context)
    request = replace(
        _request(agent, wish, session, branch, dedupe_key),
        trigger_type=TriggerType.FORK,
        forked_from=branch.point.job_id,
    )
    return await submit(request, context)


async def run_branch(request: SubmitRequest, context: FleetContext) -> Submitted:
    """A new job in a branch of the session it would join, at the last complete turn; in a new one when there is none."""
    key = session_key_of(request)
    if key.mode is SessionMode.FRESH_PER_JOB:
        raise UsageError(
            f"agent {key.agent!r} starts a new session for every job, so there is nothing to fork",
            next_step=NextStep(Action.RUN, agent=key.agent),
        )
    current = context.reader.current_session(key)
    if current is None:
        return await submit(request, context)
    session = await told(current, context)
    branch = find_branch(session, AtLastTurn(), context)
    forked_from = branch.point.job_id
    fork = replace(request, branch=branch, trigger_type=TriggerType.FORK, forked_from=forked_from)
    return await submit(fork, context)


def _request(
    agent: Agent,
    wish: ResumeOptions,
    session: Session,
    branch: Branch | None,
    dedupe_key: str | None,
) -> SubmitRequest:
    """A job in the session, or in the branch of it."""
    return SubmitRequest(
        agent=agent,
        prompt=wish.prompt if wish.prompt is not None else GO_ON,
        inputs=wish.inputs,
        overrides=wish.overrides,
        priority=wish.priority,
        refuses_held=wish.refuses_held,
        into=session.id if branch is None else None,
        branch=branch,
        channel_id=session.channel_id,
        dedupe_key=dedupe_key,
    )


def find_branch(session: Session, at: ForkAt | None, stores: Stores) -> Branch:
    """Return the branch of the session at that place, else at its end; nothing is recorded."""
    point = find_point(stores.reader, stores.journals, session, at)
    return Branch(of=session, point=point)


async def branch(
    session: Session, at: ForkAt | None, context: FleetContext
) -> tuple[Session, ForkPoint]:
    """A branch of the session at that place, else at its end."""
    point = find_point(context.reader, context.journals, session, at)
    made = await fork_session(
        session,
        point,
        state=context.state,
        clock=context.clock,
        random_text=context.random_text,
    )
    return made, point


def _check_agent(session: Session, agent: Agent, context: FleetContext) -> None:
    """What was said to one agent is not for another; what no agent of the fleet said, for any that understands it."""
    if session.agent == agent.name:
        return
    if session.agent in context.agents:
        raise RefusedError(
            f"session {session.id} belongs to agent {session.agent!r}, not to {agent.name!r}",
            next_step=NextStep(Action.RUN_IN_SESSION, session=session.id, agent=session.agent),
        )
    if not agent.runtime.can_resume(session.runtime_type):
        raise RefusedError(
            f"session {session.id} was run by {session.runtime_type}, and agent {agent.name!r} is run by"
            f" {agent.runtime.name}",
            next_step=NextStep(Action.LIST_AGENTS),
        )


async def resume_at(
    job_id: JobId,
    number: int,
    agent: Agent,
    wish: ResumeOptions,
    context: FleetContext,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on from checkpoint `number` of `job_id`; what was said after it is not known to it.

    A job that waits where its last checkpoint is goes on itself. From every other place a new job goes on
    in a branch, and the old one stays as it is. A new one is made once for each dedupe key.
    """
    job = get_job(context.reader, job_id)
    if is_done_already(job_id, dedupe_key, context):
        return job
    found = list_bookmarks(context.reader, context.journals, job_id)
    if not any(one.number == number for one in found):
        there = ", ".join(str(one.number) for one in found) or "none"
        raise InvalidValueError(
            f"job {job_id} has no checkpoint {number}; there are {there}",
            next_step=NextStep(Action.LIST_CHECKPOINTS, job=job_id),
        )
    if job.status is JobStatus.SUSPENDED and number == found[-1].number:
        return await resume_job(
            job_id, agent, wish, context, rescue=rescue, dedupe_key=dedupe_key
        )
    if job.status in (JobStatus.RUNNING, JobStatus.PENDING):
        raise RefusedError(
            f"job {job_id} is {job.status.value}", next_step=NextStep(Action.CANCEL_JOB, job=job_id)
        )
    if job.session_id is None:
        raise RefusedError(f"job {job_id} has no session to continue")
    place = AtCheckpoint(number=number, job_id=job_id)
    forked = await run_fork(job.session_id, place, agent, wish, context, dedupe_key=dedupe_key)
    return forked.job


async def resume_session(
    session_id: SessionId,
    agent: Agent,
    wish: ResumeOptions,
    context: FleetContext,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on: a suspended or interrupted one of the session, else a new one in it.

    Without a prompt there is no new one beside an open job or after a completed one: `RefusedError`. With a prompt,
    the new one waits its turn while another job runs. A new one is made once for each dedupe key.
    """
    jobs = context.reader.jobs_of_session(session_id)
    for place, job in enumerate(reversed(jobs) if dedupe_key is not None else ()):
        is_recent = place < LOOKED_BACK and is_done_already(job.id, dedupe_key, context)
        if is_recent or job.dedupe_key == dedupe_key:
            return job
    last = jobs[-1] if jobs else None
    if last is not None and wish.prompt is None:
        if not last.is_terminal:
            return await resume_job(
                last.id, agent, wish, context, rescue=rescue, dedupe_key=dedupe_key
            )
        _check_not_completed(session_id, last)
    elif last is not None and last.status is JobStatus.SUSPENDED:
        # A job that only lost its worker is not asked anything new: what is to be said to it is a job of its own.
        try:
            return await resume_job(
                last.id, agent, wish, context, rescue=rescue, dedupe_key=dedupe_key
            )
        except RefusedError:
            pass  # somebody is at it already: the new job comes after it
    submitted = await continue_session(session_id, agent, wish, context, dedupe_key=dedupe_key)
    return submitted.job


def _check_not_completed(session_id: SessionId, last: Job) -> None:
    if last.status is JobStatus.COMPLETED:
        raise RefusedError(
            f"session {session_id}: its last job {last.id} is completed; to start a new job, give a prompt",
            next_step=NextStep(Action.RESUME_SESSION_WITH_PROMPT, session=session_id),
        )
