"""Perform: carry out a request, whichever surface it came from.

Everything that holds for all of them is here: the agent is found, may run and is not blocked; a dedupe key
makes one job; raised limits are added to earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.limits.guard import raises_limits
from nightherd.engine.operations.agents import Agents
from nightherd.engine.operations.inbox import Answered, answer_item
from nightherd.engine.operations.jobs import cancel_job, retry_job
from nightherd.engine.operations.raise_limits import given_before
from nightherd.engine.operations.requests import (
    Answer,
    Cancel,
    ForkOf,
    InSession,
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
from nightherd.engine.operations.resume import (
    GO_ON,
    OPEN,
    Rescue,
    ResumeOptions,
    continue_session,
    resume_at,
    resume_job,
    resume_session,
    run_branch,
    run_fork,
)
from nightherd.engine.operations.schedules import override_schedule, schedule_request
from nightherd.engine.operations.submit import (
    SubmitRequest,
    Submitted,
    masked_inputs,
    prompt_of,
    submit,
)
from nightherd.errors import RefusedError
from nightherd.model import change as changes
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Refused
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.schedules.due import parse_rule
from nightherd.model.schedules.jobs import find_schedule
from nightherd.model.schedules.schedule import OverrideSchedule
from nightherd.model.secrets import Secrets
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader
from nightherd.views.jobs import get_job


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
        return await cancel_job(request.job_id, context, context.threads, rescue=rescue)
    if isinstance(request, SetSchedule):
        await _set_schedule(request, context)
        return None
    if isinstance(request, Answer):
        return await answer_item(request, agents_of(context), context)
    if isinstance(request, ResetAgent):
        await reset_agent(agents_of(context).get(request.agent).name, context)
        return None
    agent = agents_of(context).find(request, context.reader)
    _check_runs(request, agent, context)
    match request:
        case Submit():
            return await _submit(request, agent, context)
        case Retry(job_id=job_id, dedupe_key=key, refuses_held=is_refused):
            return await retry_job(job_id, agent, context, dedupe_key=key, refuses_held=is_refused)
        case RunSchedule(schedule=name, dedupe_key=key, refuses_held=is_refused):
            _, schedule = find_schedule(context.agents, f"{agent.name}/{name}")
            draft = schedule_request(agent, schedule)
            draft = replace(draft, dedupe_key=key, refuses_held=is_refused)
            return (await submit(draft, context)).job
        case Resume():
            return await _resume(request, agent, context, rescue)
        case ResumeSession(session_id=session_id, prompt=prompt, dedupe_key=key):
            options = ResumeOptions(prompt=prompt, refuses_held=request.refuses_held)
            return await resume_session(
                session_id, agent, options, context, rescue=rescue, dedupe_key=key
            )


def agents_of(context: FleetContext) -> Agents:
    """Return the agents that requests may name."""
    return Agents(
        agents=context.agents,
        withheld=context.withheld,
        is_same_directory=context.is_same_directory,
        keeps_transcripts=context.transcripts.covers,
    )


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
        prompt = str(secrets.mask(prompt_of(_draft(request, agent)))) if is_given else None
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
        prompt_of(_draft(request, agent))


def _check_runs(request: NewJobRequest, agent: Agent, context: FleetContext) -> None:
    """`RefusedError` when there is no runtime for the agent here; a job that is open needs none to be given more."""
    if context.can_run(agent.runtime.name):
        return
    if isinstance(request, Resume) and get_job(context.reader, request.job_id).status in OPEN:
        return
    raise RefusedError(f"runtime {agent.runtime.name!r} is not available here")


async def _submit(request: Submit, agent: Agent, context: FleetContext) -> Submitted:
    options = ResumeOptions(
        prompt=request.prompt,
        inputs=request.inputs,
        overrides=request.options,
        priority=request.priority,
        refuses_held=request.refuses_held,
    )
    session, key = request.session, request.dedupe_key
    if isinstance(session, ForkOf):
        source, at = session.session_id, session.at
        submitted = await run_fork(source, at, agent, options, context, dedupe_key=key)
    elif isinstance(session, InSession):
        source = session.session_id
        submitted = await continue_session(source, agent, options, context, dedupe_key=key)
    else:
        make = run_branch if session.is_branch else submit
        submitted = await make(_draft(request, agent), context)
    if not (submitted.is_new or request.has_own_key):
        _check_same_work(request, agent, submitted.job, context)
    return submitted


def _draft(request: Submit, agent: Agent) -> SubmitRequest:
    """The new job; in its agent's session unless the caller puts it into another."""
    own = request.session if isinstance(request.session, OwnSession) else None
    prompt = request.prompt if own is not None or request.prompt is not None else GO_ON
    mode = own.mode if own is not None else None
    return SubmitRequest(
        agent=agent,
        prompt=prompt,
        inputs=request.inputs,
        overrides=request.options,
        priority=request.priority,
        channel_id=own.channel if own is not None else None,
        session_terms=None if mode is None else replace(agent.session, mode=mode),
        trigger_type=request.trigger_type,
        trigger_id=request.trigger_id,
        dedupe_key=request.dedupe_key,
        refuses_held=request.refuses_held,
    )


def _check_same_work(request: Submit, agent: Agent, job: Job, context: FleetContext) -> None:
    """A key that was used for other work is a mistake of the caller, and not answered with that work."""
    texts = context.reader.find_texts(job.id)
    prompt = context.secrets.mask(prompt_of(_draft(request, agent)))
    if job.agent != agent.name or (texts is not None and texts.prompt != prompt):
        raise RefusedError(
            f"this idempotency key was used for other work, job {job.id}",
            hint="use a new key for new work",
        )


async def _resume(request: Resume, agent: Agent, context: FleetContext, rescue: Rescue) -> Job:
    options = ResumeOptions(
        prompt=request.prompt,
        overrides=_raised_limits(request, context.reader),
        refuses_held=request.refuses_held,
    )
    job_id, key = request.job_id, request.dedupe_key
    if request.at_checkpoint is None:
        return await resume_job(job_id, agent, options, context, rescue=rescue, dedupe_key=key)
    number = request.at_checkpoint
    return await resume_at(job_id, number, agent, options, context, rescue=rescue, dedupe_key=key)


def _raised_limits(request: Resume, reader: StateReader) -> JobOptions:
    """The limits that the job was given before, with those it is given now."""
    if not request.limits:
        return NO_OPTIONS
    earlier = given_before(get_job(reader, request.job_id), reader)
    return JobOptions(limits={**earlier, **request.limits})


async def _set_schedule(request: SetSchedule, context: FleetContext) -> None:
    agent, schedule = find_schedule(context.agents, f"{request.agent}/{request.schedule}")
    rule = None if request.rule is None else request.rule.strip()
    if rule is not None:
        parse_rule(rule, schedule.timezone)
    change = OverrideSchedule(
        agent=agent.name,
        schedule=schedule.name,
        at=context.clock.now(),
        by=request.by,
        is_declared_enabled=schedule.enabled,
        enabled=request.enabled,
        rule=rule,
        reset=request.reset,
    )
    await override_schedule(
        change, agent, schedule, state=context.state, reader=context.reader, clock=context.clock
    )


async def reset_agent(name: str, stores: Stores) -> None:
    """Forget the error of the agent; `RefusedError` for one that never had a job."""
    (answer,) = await stores.state.apply([changes.ResetAgent(agent=name)])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message, next_step=NextStep(Action.LIST_AGENTS))
