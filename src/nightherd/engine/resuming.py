"""Resuming and forking as jobs: the work goes on in the session it was done in, or in a branch of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nightherd.engine.admission import check_admission
from nightherd.engine.execution import job_of
from nightherd.engine.forking import AtLastTurn, ForkAt, ForkPoint, find_point, fork_session
from nightherd.engine.hand_turns import CLAUDE
from nightherd.engine.logins import stopped_by
from nightherd.engine.raising import amend, check_raised
from nightherd.engine.retelling import told
from nightherd.engine.submit import SubmitRequest, Submitted, session_key_of, submit
from nightherd.engine.workshop import Workshop
from nightherd.errors import RefusedError, UsageError
from nightherd.model.agent import Agent
from nightherd.model.change import Applied, ResumeJob
from nightherd.model.ids import JobId, SessionId
from nightherd.model.job import Job, JobStatus
from nightherd.model.raising import KEPT
from nightherd.model.session import SESSION_LIFECYCLE, Session, SessionMode
from nightherd.model.session_order import ahead_text
from nightherd.model.trigger import TriggerType
from nightherd.views.jobs import get_job
from nightherd.views.sessions import get_session

GO_ON = "Go on from where you left off."
"""What a job that goes on in an old session is asked when nothing else is said."""

OPEN = (JobStatus.RUNNING, JobStatus.PENDING)
"""Jobs that go on anyway."""

Rescue = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the work that goes on is asked, and allowed, besides."""

    prompt: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    refuses_held: bool = False
    """As for `SubmitRequest`."""


async def resume_job(
    job_id: JobId,
    agent: Agent,
    wish: Wish,
    workshop: Workshop,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on: the same one when it was suspended or interrupted, a new one when it had ended.

    A new one is made once for each dedupe key. One that runs, or waits for a worker anyway, can be given more to
    use; `RefusedError` for anything else.
    """
    job = get_job(workshop.reader, job_id)
    texts = workshop.reader.find_texts(job_id)
    kept = texts.overrides if texts is not None else {}
    check_admission(agent, job.schedule, {**kept, **wish.overrides}, workshop)
    was_running = job.status is JobStatus.RUNNING
    if was_running:
        # Its worker may be gone, and nobody has noticed yet.
        await rescue()
        job = get_job(workshop.reader, job_id)
    masked = None if wish.prompt is None else str(workshop.secrets.mask(wish.prompt))
    if job.status in OPEN:
        is_interrupted = was_running and job.status is JobStatus.PENDING
        if not is_interrupted and (KEPT not in wish.overrides or masked is not None):
            raise _refused(job, workshop)
        if KEPT not in wish.overrides and masked is None:
            return job
        answer = await amend(job, agent, wish.overrides, workshop, prompt=masked)
        if isinstance(answer, Applied):
            return job
        job = get_job(workshop.reader, job_id)  # it has come to its limit, or its end, just now
        if job.status in OPEN:
            raise _refused(job, workshop)
    if job.status is JobStatus.SUSPENDED:
        check_raised(job, agent, wish.overrides, workshop.reader)
        change = ResumeJob(
            job_id=job_id,
            at=workshop.clock.now(),
            prompt=masked,
            overrides=wish.overrides,
            lifts=stopped_by(agent, workshop.environment),
        )
        (answer,) = await workshop.state.apply([change])
        return job_of(answer)
    if job.session_id is None:
        raise RefusedError(f"job {job_id} has no session to go on in")
    if job.status is JobStatus.COMPLETED and wish.prompt is None:
        raise RefusedError(
            f"job {job_id} is completed: to resume it is to start a new job in its session",
            hint=f"nightherd jobs resume {job_id} -p TEXT",
        )
    return await go_on_in(
        job.session_id, agent, wish, workshop, resumed_from=job_id, dedupe_key=dedupe_key
    )


def _refused(job: Job, workshop: Workshop) -> RefusedError:
    ahead = workshop.reader.jobs_ahead(job, 1)
    if job.status is JobStatus.PENDING and ahead:
        message = f"job {job.id} waits for its turn: {ahead_text(ahead[0])}"
        return RefusedError(message, hint=f"nightherd jobs show {ahead[0].id}")
    if job.status is JobStatus.PENDING:
        return RefusedError(f"job {job.id} waits for a worker already", hint="nightherd worker")
    return RefusedError(f"job {job.id} is running", hint=f"nightherd jobs tail {job.id} -f")


async def go_on_in(
    session_id: SessionId,
    agent: Agent,
    wish: Wish,
    workshop: Workshop,
    *,
    resumed_from: JobId | None = None,
    dedupe_key: str | None = None,
) -> Job:
    """A new job in that session, or, when the session is over and read-only, in a branch of its end."""
    session = await told(get_session(workshop.reader, session_id), workshop)
    _check_agent(session, agent, workshop)
    if resumed_from is None:
        jobs = workshop.reader.jobs_of_session(session_id)
        resumed_from = jobs[-1].id if jobs else None
    if session.status in SESSION_LIFECYCLE.terminal or session.removed_at is not None:
        session, _ = await branch(session, None, workshop)
    request = _request(agent, wish, session, dedupe_key)
    return (await submit(replace(request, resumed_from=resumed_from), workshop)).job


async def run_fork(
    session_id: SessionId,
    at: ForkAt | None,
    agent: Agent,
    wish: Wish,
    workshop: Workshop,
    *,
    dedupe_key: str | None = None,
) -> Job:
    """A new job in a new branch of that session; it knows which job wrote the place it branches from.

    Asked again with the same dedupe key it is the same job; the branch made for the second stays empty.
    """
    session = await told(get_session(workshop.reader, session_id), workshop)
    _check_agent(session, agent, workshop)
    made, point = await branch(session, at, workshop)
    request = replace(
        _request(agent, wish, made, dedupe_key),
        trigger_type=TriggerType.FORK,
        forked_from=point.job_id,
    )
    return (await submit(request, workshop)).job


async def run_branch(request: SubmitRequest, workshop: Workshop) -> Submitted:
    """A new job in a branch of the session it would join, at the last complete turn; in a new one when there is none."""
    key = session_key_of(request)
    if key.mode is SessionMode.FRESH_PER_JOB:
        raise UsageError(
            f"agent {key.agent!r} begins a new session for every job; there is nothing to branch from",
            hint=f"nightherd run {key.agent}",
        )
    current = workshop.reader.current_session(key)
    if current is None:
        return await submit(request, workshop)
    session = await told(current, workshop)
    made, point = await branch(session, AtLastTurn(), workshop)
    fork = replace(request, into=made.id, trigger_type=TriggerType.FORK, forked_from=point.job_id)
    return await submit(fork, workshop)


def _request(agent: Agent, wish: Wish, into: Session, dedupe_key: str | None) -> SubmitRequest:
    return SubmitRequest(
        agent=agent,
        prompt=wish.prompt if wish.prompt is not None else GO_ON,
        inputs=wish.inputs,
        overrides=wish.overrides,
        priority=wish.priority,
        refuses_held=wish.refuses_held,
        into=into.id,
        channel_id=into.channel_id,
        dedupe_key=dedupe_key,
    )


async def branch(
    session: Session, at: ForkAt | None, workshop: Workshop
) -> tuple[Session, ForkPoint]:
    """A branch of the session at that place, else at its end."""
    point = find_point(workshop.reader, workshop.journals, session, at)
    made = await fork_session(
        session,
        point,
        state=workshop.state,
        clock=workshop.clock,
        random_text=workshop.random_text,
    )
    return made, point


def _check_agent(session: Session, agent: Agent, workshop: Workshop) -> None:
    """What was said to one agent is not for another; what no agent of the fleet said, for any that understands it."""
    if session.agent == agent.name:
        return
    if session.agent in workshop.agents:
        raise RefusedError(
            f"session {session.id} belongs to agent {session.agent!r}, not to {agent.name!r}",
            hint=f"nightherd run {session.agent} --resume {session.id}",
        )
    runtime = agent.runtime.value
    if runtime != session.runtime_type and not {runtime, session.runtime_type} <= CLAUDE:
        raise RefusedError(
            f"session {session.id} was run by {session.runtime_type}, and agent {agent.name!r} is run by {runtime}",
            hint="nightherd agent list",
        )
