"""Perform: carry out a request, whichever surface it came from.

Everything that holds for all of them is here: the agent is found, may run and is not blocked; a dedupe key
makes one job; raised limits are added to earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext
from nightherd.engine.limits.guard import raises_limits
from nightherd.engine.operations.agents import agents_of, reset_agent
from nightherd.engine.operations.inbox import Answered, answer_item
from nightherd.engine.operations.jobs import cancel_job, retry_job
from nightherd.engine.operations.new_job import Submitted, masked_inputs, prompt_of
from nightherd.engine.operations.requests import (
    Answer,
    Cancel,
    JobRequest,
    NewJobRequest,
    OwnSession,
    Request,
    ResetAgent,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    SetSchedule,
    Submit,
)
from nightherd.engine.operations.resume import OPEN, Rescue, resume_job, resume_session
from nightherd.engine.operations.schedules import check_makes_job, run_schedule, set_schedule
from nightherd.engine.operations.submit import draft_of, submit
from nightherd.errors import RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import Job
from nightherd.model.secrets import Secrets
from nightherd.views.jobs.jobs import get_job


@overload
async def perform(request: Submit, context: FleetContext, *, rescue: Rescue) -> Submitted: ...


@overload
async def perform(
    request: Retry | Resume | ResumeSession | RunSchedule | Cancel,
    context: FleetContext,
    *,
    rescue: Rescue,
) -> Job: ...


@overload
async def perform(
    request: SetSchedule | ResetAgent, context: FleetContext, *, rescue: Rescue
) -> None: ...


@overload
async def perform(request: Answer, context: FleetContext, *, rescue: Rescue) -> Answered: ...


@overload
async def perform(
    request: JobRequest, context: FleetContext, *, rescue: Rescue
) -> Submitted | Job: ...


@overload
async def perform(
    request: JobRequest | SetSchedule | ResetAgent, context: FleetContext, *, rescue: Rescue
) -> Submitted | Job | None: ...


@overload
async def perform(
    request: Request, context: FleetContext, *, rescue: Rescue
) -> Submitted | Job | Answered | None: ...


async def perform(
    request: Request, context: FleetContext, *, rescue: Rescue
) -> Submitted | Job | Answered | None:
    """Carry out the request; returns once it is durable. A new job waits for a worker.

    `rescue` takes care of jobs whose worker is gone. What is not possible raises, and then nothing was recorded.
    """
    if isinstance(request, Cancel):
        return await cancel_job(request, context, rescue=rescue)
    if isinstance(request, SetSchedule):
        await set_schedule(request, context)
        return None
    if isinstance(request, Answer):
        return await answer_item(request, agents_of(context), context)
    if isinstance(request, ResetAgent):
        agents_of(context).get(request.agent)
        await reset_agent(request, context)
        return None
    if isinstance(request, RunSchedule):
        check_makes_job(request)
    agent = agents_of(context).find(request, context.reader)
    check_runs(request, agent, context)
    match request:
        case Submit():
            return await submit(request, context)
        case Retry():
            return await retry_job(request, agent, context)
        case RunSchedule():
            return await run_schedule(request, context)
        case Resume():
            return await resume_job(request, agent, context, rescue=rescue)
        case ResumeSession():
            return await resume_session(request, agent, context, rescue=rescue)


def gives_more(request: Request, agents: Mapping[str, Agent]) -> str | None:
    """Return what the request gives agents more of, which only a person may ask for; None for most requests."""
    if isinstance(request, Answer):
        return "answering the inbox"
    if isinstance(request, Resume) and request.limits:
        return "raising a limit"
    agent = agents.get(request.agent) if isinstance(request, Submit) else None
    if isinstance(request, Submit) and agent is not None and raises_limits(agent, request.options):
        return "a limit above the agent's own"
    return None


def masked_request(request: Request, agent: Agent | None, secrets: Secrets) -> Request:
    """Return the request without secrets; the prompt of a new job is filled in before that."""
    if isinstance(request, Submit) and agent is not None:
        is_given = request.prompt is not None or isinstance(request.session, OwnSession)
        prompt = str(secrets.mask(prompt_of(draft_of(request, agent)))) if is_given else None
        inputs = masked_inputs(request.inputs, secrets)
        return replace(request, prompt=prompt, inputs=inputs)
    if isinstance(request, Resume | ResumeSession) and request.prompt is not None:
        return replace(request, prompt=str(secrets.mask(request.prompt)))
    if isinstance(request, Answer) and request.text is not None:
        return replace(request, text=str(secrets.mask(request.text)))
    return request


def check_prompt(request: NewJobRequest, agent: Agent) -> None:
    """Raise what makes the prompt of a new job impossible, before there is anything to record it in."""
    if isinstance(request, Submit):
        prompt_of(draft_of(request, agent))


def check_runs(request: NewJobRequest, agent: Agent, context: FleetContext) -> None:
    """`RefusedError` when there is no runtime for the agent here; a job that is open needs none to be given more."""
    if context.can_run(agent.runtime.name):
        return
    if isinstance(request, Resume) and get_job(context.reader, request.job_id).status in OPEN:
        return
    raise RefusedError(f"runtime {agent.runtime.name!r} is not available here")
