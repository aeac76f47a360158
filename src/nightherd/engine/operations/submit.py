"""Submit: from a request to a recorded job, in the session of its agent, in another one, or in a branch."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.fork import AtLastTurn, Branch, ForkAt, find_point
from nightherd.engine.operations.new_job import (
    JobDraft,
    Submitted,
    prompt_of,
    record_job,
    session_key_of,
)
from nightherd.engine.operations.requests import ForkOf, InSession, OwnSession, Submit
from nightherd.engine.sessions.import_turns import ensure_turns_imported
from nightherd.errors import RefusedError, UsageError
from nightherd.model.agents.agent import Agent, get_agent
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.sessions.session import Session, SessionMode, is_over
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.next_step import Action, NextStep
from nightherd.views.sessions.sessions import get_session

GO_ON = "Go on from where you left off."
"""The prompt of a job that continues an old session when none is given."""


async def submit(request: Submit, context: FleetContext) -> Submitted:
    """Record the job and return once it is durable. The same dedupe key never makes a second job."""
    if request.agent == COMMANDS_AGENT:  # what it is asked is run by a shell
        raise RefusedError(f"only workflows run commands: {COMMANDS_AGENT!r} takes no jobs")
    agent = get_agent(context.agents, request.agent, context.withheld)
    draft, session = draft_of(request, agent), request.session
    if isinstance(session, ForkOf):
        draft = await in_fork(draft, session.session_id, session.at, context)
    elif isinstance(session, InSession):
        draft = await in_session(draft, session.session_id, context)
    elif session.is_branch:
        draft = await _in_branch_of_own(draft, context)
    submitted = await record_job(draft, context)
    if not (submitted.is_new or request.has_own_key):
        _check_same_work(draft, submitted.job, context)
    return submitted


def draft_of(request: Submit, agent: Agent) -> JobDraft:
    """Return the new job in its agent's own session."""
    own = request.session if isinstance(request.session, OwnSession) else None
    prompt = request.prompt if own is not None or request.prompt is not None else GO_ON
    mode = own.mode if own is not None else None
    return JobDraft(
        agent=agent,
        prompt=prompt,
        inputs=request.inputs,
        overrides=request.options,
        priority=request.priority,
        channel_id=own.channel if own is not None else None,
        session_terms=None if mode is None else replace(agent.session, mode=mode),
        trigger_type=request.trigger_type,
        trigger_id=request.trigger_id,
        parent_job_id=request.parent_job_id,
        asked_about=request.asked_about,
        dedupe_key=request.dedupe_key,
        refuses_held=request.refuses_held,
    )


async def in_session(
    draft: JobDraft,
    session_id: SessionId,
    context: FleetContext,
    *,
    resumed_from: JobId | None = None,
) -> JobDraft:
    """Return the job in that session or, when the session is over and read-only, in a branch of its end."""
    session = await _find(draft, session_id, context)
    if resumed_from is None:
        jobs = context.reader.jobs_of_session(session_id)
        resumed_from = jobs[-1].id if jobs else None
    branch = find_branch(session, None, context) if is_over(session) else None
    return replace(
        draft,
        into=session.id if branch is None else None,
        branch=branch,
        channel_id=session.channel_id,
        resumed_from=resumed_from,
    )


async def in_fork(
    draft: JobDraft, session_id: SessionId, at: ForkAt | None, context: FleetContext
) -> JobDraft:
    """Return the job in a new branch of that session; it names the job that wrote the place it branches from."""
    session = await _find(draft, session_id, context)
    return _forked(replace(draft, channel_id=session.channel_id), find_branch(session, at, context))


async def _in_branch_of_own(draft: JobDraft, context: FleetContext) -> JobDraft:
    """The job in a branch of the session it would join, at the last complete turn; as it is when there is none."""
    key = session_key_of(draft)
    if key.mode is SessionMode.FRESH_PER_JOB:
        raise UsageError(
            f"agent {key.agent!r} starts a new session for every job, so there is nothing to fork",
            next_step=NextStep(Action.RUN, agent=key.agent),
        )
    current = context.reader.current_session(key)
    if current is None:
        return draft
    session = await ensure_turns_imported(current, context)
    return _forked(draft, find_branch(session, AtLastTurn(), context))


def _forked(draft: JobDraft, branch: Branch) -> JobDraft:
    return replace(
        draft,
        branch=branch,
        trigger_type=TriggerType.FORK,
        forked_from=branch.point.job_id,
    )


def find_branch(session: Session, at: ForkAt | None, stores: Stores) -> Branch:
    """Return the branch of the session at that place, else at its end; nothing is recorded."""
    return Branch(of=session, point=find_point(stores.reader, stores.journals, session, at))


async def _find(draft: JobDraft, session_id: SessionId, context: FleetContext) -> Session:
    """The session, whole, if the agent may continue it: what was said to one agent is not for another.

    What no agent of the fleet said is for any agent whose runtime understands it.
    """
    session, agent = (
        await ensure_turns_imported(get_session(context.reader, session_id), context),
        draft.agent,
    )
    if session.agent == agent.name:
        return session
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
    return session


def _check_same_work(draft: JobDraft, job: Job, context: FleetContext) -> None:
    """A key that was used for other work is a mistake of the caller, and not answered with that work."""
    texts = context.reader.find_texts(job.id)
    prompt = context.secrets.mask(prompt_of(draft))
    if job.agent != draft.agent.name or (texts is not None and texts.prompt != prompt):
        raise RefusedError(
            f"this idempotency key was used for other work, job {job.id}",
            hint="use a new key for new work",
        )
