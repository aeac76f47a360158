"""New jobs: from a draft to a recorded job. Nothing runs before the job is durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.limits.budgets import daily_limits, days_above, tree_budgets
from nightherd.engine.limits.guard import job_limits
from nightherd.engine.limits.logins import uncounted_text, unpriced_text
from nightherd.engine.operations.fork import Branch, forked
from nightherd.errors import (
    AgentBlockedError,
    NightherdError,
    RefusedError,
    SessionNotFoundError,
    UsageError,
)
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import CostSource
from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.ids import JobId, SessionId, generate_job_id, generate_session_id
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import Job, JobStatus, JobTexts, TriggerType
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.jobs.overrides import overridden, repo_of_inputs
from nightherd.model.limits.limits import LimitName
from nightherd.model.limits.login import login_of
from nightherd.model.limits.spending import declared_price
from nightherd.model.problem import Place, Problem
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.order import advice_on_suspended, steps_around
from nightherd.model.sessions.session import (
    Session,
    SessionKey,
    SessionMode,
    SessionStatus,
    SessionTerms,
)
from nightherd.model.text import fill_inputs, input_text, input_values, render
from nightherd.model.work.changes import StartWork
from nightherd.next_step import Action, NextStep

NEVER = datetime.max.replace(tzinfo=UTC)


class JobDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work asked of an agent."""

    agent: Agent
    prompt: str | None = None
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str | None = None
    schedule: str | None = None
    is_filled: bool = False
    """Whether the inputs are in the prompt already: texts of other people in it are never filled in."""
    priority: int = 0
    dedupe_key: str | None = None
    channel_id: str | None = None
    """The conversation it belongs to, for agents that keep one session for each."""
    session_terms: SessionTerms | None = None
    """Instead of the agent's own: what its schedule says, or the one who asks."""
    into: SessionId | None = None
    """The session it continues in, as it is."""
    branch: Branch | None = None
    """The branch it begins, recorded together with it."""
    overrides: JobOptions = NO_OPTIONS
    """What this job has other than its agent."""
    resumed_from: JobId | None = None
    forked_from: JobId | None = None
    parent_job_id: JobId | None = None
    asked_about: JobId | None = None
    """The job that met a limit, when this one is to decide about it."""
    retries: JobId | None = None
    """The ended job whose work it does once more."""
    work: StartWork | None = None
    """The issue that it works on, taken before."""
    refuses_held: bool = False
    """Refuse the job where a suspended job holds its session and waits for a person, instead of queueing it."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The job that stands for the request; `is_new` is false when the same work was known already."""

    job: Job
    is_new: bool


async def record_job(request: JobDraft, context: FleetContext) -> Submitted:
    """Record the job and return once it is durable. The same dedupe key never makes a second job."""
    _check(request, context)
    prompt = str(context.secrets.mask(prompt_of(request)))

    def make(_: SubmitJob | None = None) -> SubmitJob:
        return _change(request, prompt, context)

    (answer,) = await apply_with_fresh_ids([make()], make, context.state.apply)
    match answer:
        case Applied(job=Job() as job):
            return Submitted(job=job, is_new=True)
        case Refused(why=Why.DUPLICATE, job=Job() as known):
            return Submitted(job=known, is_new=False)
        case Applied():
            raise NightherdError("the job was recorded and not returned")
        case Refused(why=Why.MISSING, message=message):
            raise SessionNotFoundError(message, next_step=NextStep(Action.LIST_SESSIONS))
        case Refused(why=Why.SESSION_HELD, message=message, job=Job() as holder):
            words, step = advice_on_suspended(holder)
            raise RefusedError(
                message, hint=words, next_step=step, alternatives=steps_around(holder)
            )
        case Refused(message=message):
            raise RefusedError(message)


def job_change(request: JobDraft, context: FleetContext) -> SubmitJob:
    """The change that records the job, under a fresh id; for those who record more in the same breath."""
    _check(request, context)
    return _change(request, str(context.secrets.mask(prompt_of(request))), context)


def _check(request: JobDraft, context: FleetContext) -> None:
    check_admission(request.agent, request.schedule, request.overrides, context)


def prompt_of(request: JobDraft) -> str:
    """What the agent will be asked: the prompt given, else the agent's own; inputs are filled in.

    What a person types stays as it is but for the inputs that come with it: `${HOME}` may be what it is about.
    """
    if request.prompt is not None:
        if not request.prompt.strip():
            raise UsageError(
                "the prompt is empty",
                next_step=NextStep(Action.RUN_WITH_PROMPT, agent=request.agent.name),
            )
        is_typed = request.trigger_type in (TriggerType.MANUAL, TriggerType.FORK)
        is_whole = request.is_filled or not is_typed
        return request.prompt if is_whole else fill_inputs(request.prompt, request.inputs)
    if request.agent.default_prompt is not None:
        return render(request.agent.default_prompt, values_of(request.agent, request.inputs))
    raise UsageError(
        f"agent {request.agent.name!r} has no default_prompt, and none was given",
        next_step=NextStep(Action.RUN_WITH_PROMPT, agent=request.agent.name),
    )


def values_of(agent: Agent, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The run-time values a job's templates may use."""
    values = input_values(inputs)
    repo = repo_of_inputs(inputs) or agent.repo
    if repo is not None:
        values["repo"] = repo
    return values


def masked_inputs(inputs: Mapping[str, Any], secrets: Secrets) -> dict[str, Any]:
    """Return the inputs without secrets. One that has a secret as a number becomes text: numbers cannot be masked."""
    return {name: _masked(value, secrets) for name, value in inputs.items()}


def _masked(value: Any, secrets: Secrets) -> Any:
    masked = secrets.mask(value)
    text = input_text(masked)
    again = secrets.mask(text)
    return masked if again == text else again


def _change(request: JobDraft, prompt: str, context: FleetContext) -> SubmitJob:
    at = context.clock.now()
    session = _session(request, at, generate_session_id(context.random_text))
    job = Job(
        id=generate_job_id(at, context.random_text),
        agent=request.agent.name,
        trigger_type=request.trigger_type,
        trigger_id=request.trigger_id,
        schedule=request.schedule,
        status=JobStatus.PENDING,
        created_at=at,
        session_id=session.id,
        priority=request.priority,
        dedupe_key=request.dedupe_key,
        resumed_from=request.resumed_from,
        forked_from=request.forked_from,
        parent_job_id=request.parent_job_id,
        asked_about=request.asked_about,
    )
    inputs = masked_inputs(request.inputs, context.secrets)
    texts = JobTexts(job_id=job.id, prompt=prompt, inputs=inputs, overrides=request.overrides)
    return SubmitJob(
        job=job,
        texts=texts,
        session=session,
        into=request.into,
        is_branch=request.branch is not None,
        login=login_of(request.agent, context.environment),
        refuses_held=request.refuses_held,
        retries=request.retries,
        work=request.work,
    )


def session_key_of(request: JobDraft) -> SessionKey:
    """What the session belongs to that the job would join."""
    return _session(request, NEVER, SessionId("")).key


def _session(request: JobDraft, at: datetime, session_id: SessionId) -> Session:
    agent = request.agent
    if request.branch is not None:
        source = request.branch.of
        branch = forked(source, request.branch.point, session_id=session_id, at=at)
        if source.agent == agent.name:
            return branch
        # It came from elsewhere, and belongs from now on to the agent that continues it.
        return msgspec.structs.replace(branch, agent=agent.name, runtime_type=agent.runtime.name)
    terms = request.session_terms or agent.session
    is_per_channel = terms.mode is SessionMode.PER_CHANNEL
    if is_per_channel and request.channel_id is None and request.into is None:
        raise UsageError(
            f"agent {agent.name!r} keeps one session for each channel, and no channel was given",
            next_step=NextStep(Action.RUN_IN_CHANNEL, agent=agent.name),
        )
    return Session(
        id=session_id,
        agent=agent.name,
        mode=terms.mode,
        channel_id=request.channel_id if is_per_channel else None,
        # Only a schedule with session settings of its own has a session of its own.
        schedule=request.schedule if request.session_terms is not None else None,
        max_age_s=_seconds(terms.max_age),
        max_idle_s=_seconds(terms.max_idle),
        status=SessionStatus.CREATED,
        runtime_type=agent.runtime.name,
        working_directory=agent.working_directory,
        docker_enabled=agent.container is not None,
        operation=agent.operation,
        created_at=at,
        last_active_at=at,
    )


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def check_admission(
    agent: Agent, schedule: str | None, options: JobOptions, context: FleetContext
) -> None:
    """Raise `AgentBlockedError` when a job of `agent` may not start with these options."""
    if agent.blocked_by:
        raise AgentBlockedError(agent.name, agent.blocked_by)
    if agent.runtime.cost is CostSource.REPORTED or agent.script is not None:
        return  # a script says itself what it costs
    effective = overridden(for_schedule(agent, schedule), options)
    is_uncounted = agent.runtime.cost is CostSource.UNKNOWN
    if (is_uncounted or _has_unknown_price(effective, context)) and _limits_spending(
        effective, schedule, options, context
    ):
        message = uncounted_text(effective) if is_uncounted else unpriced_text(effective)
        place = effective.model_place or Place(file="", line=1, column=1)
        problem = Problem(place=place, message=message, path=f"agents.{agent.name}.model")
        raise AgentBlockedError(agent.name, (problem,))


def _has_unknown_price(agent: Agent, context: FleetContext) -> bool:
    """Whether one of the agent's models has neither a declared nor a published price."""
    return any(
        declared_price(context.prices, model) is None and not context.has_price(model)
        for model in (agent.model, agent.fallback_model)
        if model is not None
    )


def _limits_spending(
    agent: Agent, schedule: str | None, options: JobOptions, context: FleetContext
) -> bool:
    """Whether a limit of dollars applies: the job's own, a parent's, the fleet's, or one of a day."""
    if job_limits(agent, options).spend is not None or context.budget.spend is not None:
        return True
    within = options.within
    if any(budget.name is LimitName.SPEND for budget in tree_budgets(within, context)):
        return True
    days = [
        *daily_limits(agent, schedule, context.budget),
        *days_above(within, context),
    ]
    return any(one.limits.spend is not None for one in days)


ID_TRIES = 8
"""How often a taken id is replaced by a new one; two in a row is already a one in a thousand million."""

ChangeT = TypeVar("ChangeT")


async def apply_with_fresh_ids(
    changes: Sequence[ChangeT],
    renew: Callable[[ChangeT], ChangeT],
    apply: Callable[[Sequence[ChangeT]], Awaitable[Sequence[Answer]]],
) -> list[Answer]:
    """Apply the changes together and return their answers; `renew` gives a change whose id is taken another one.

    `NightherdError` when the ids stay taken. What was applied by then stays applied.
    """
    tried = list(changes)
    answers = list(await apply(tried))
    for _ in range(ID_TRIES):
        taken = [place for place, answer in enumerate(answers) if _is_taken(answer)]
        if not taken:
            return answers
        for place in taken:
            tried[place] = renew(tried[place])
        again = await apply([tried[place] for place in taken])
        for place, answer in zip(taken, again, strict=True):
            answers[place] = answer
    raise NightherdError(f"no free id after {ID_TRIES} tries")


def _is_taken(answer: Answer) -> bool:
    return isinstance(answer, Refused) and answer.why is Why.ID_TAKEN
