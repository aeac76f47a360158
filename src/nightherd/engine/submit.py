"""Submit: from a request to a recorded job. Nothing runs before the job is durable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from nightherd.engine.admission import check_admission
from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError, RefusedError, SessionNotFoundError, UsageError
from nightherd.model.agent import Agent
from nightherd.model.change import Applied, Refused, SubmitJob, Why
from nightherd.model.ids import JobId, SessionId, generate_job_id, generate_session_id
from nightherd.model.job import Job, JobStatus, JobTexts
from nightherd.model.login import login_of
from nightherd.model.session import Session, SessionKey, SessionMode, SessionStatus
from nightherd.model.session_order import held_choices
from nightherd.model.session_terms import SessionTerms
from nightherd.model.template import fill_inputs, input_text, input_values, render
from nightherd.model.trigger import TriggerType

NEVER = datetime.max.replace(tzinfo=UTC)
ID_TRIES = 8
"""How often a taken id is replaced by a new one; two in a row is already a one in a thousand million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
    """A piece of work asked of an agent."""

    agent: Agent
    prompt: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str | None = None
    schedule: str | None = None
    priority: int = 0
    dedupe_key: str | None = None
    channel_id: str | None = None
    """The conversation it belongs to, for agents that keep one session for each."""
    session_terms: SessionTerms | None = None
    """Instead of the agent's own: what its schedule says, or the one who asks."""
    into: SessionId | None = None
    """The session it goes on in, as it is."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What this job has other than its agent (model/overrides.py)."""
    resumed_from: JobId | None = None
    forked_from: JobId | None = None
    parent_job_id: JobId | None = None
    refuses_held: bool = False
    """Refuse the job where a suspended job holds its session and waits for a person, instead of queueing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The job that stands for the request; `is_new` is false when the same work was known already."""

    job: Job
    is_new: bool


async def submit(request: SubmitRequest, workshop: Workshop) -> Submitted:
    """Record the job and return once it is durable. The same dedupe key never makes a second job."""
    _check(request, workshop)
    prompt = workshop.secrets.mask(prompt_of(request))
    for _ in range(ID_TRIES):
        change = _change(request, prompt, workshop)
        (answer,) = await workshop.state.apply([change])
        match answer:
            case Applied(job=Job() as job):
                return Submitted(job=job, is_new=True)
            case Refused(why=Why.DUPLICATE, job=Job() as known):
                return Submitted(job=known, is_new=False)
            case Refused(why=Why.ID_TAKEN):
                continue
            case Applied():
                raise NightherdError("the job was recorded and not returned")
            case Refused(why=Why.MISSING, message=message):
                raise SessionNotFoundError(message, hint="nightherd session list")
            case Refused(why=Why.SESSION_HELD, message=message, job=Job() as holder):
                raise RefusedError(message, hint=held_choices(holder))
            case Refused(message=message):
                raise RefusedError(message)
    raise NightherdError(f"no free job id after {ID_TRIES} tries")


def submission(request: SubmitRequest, workshop: Workshop) -> SubmitJob:
    """The change that records the job, under a fresh id; for those who record more in the same breath."""
    _check(request, workshop)
    return _change(request, str(workshop.secrets.mask(prompt_of(request))), workshop)


def _check(request: SubmitRequest, workshop: Workshop) -> None:
    check_admission(request.agent, request.schedule, request.overrides, workshop)


def prompt_of(request: SubmitRequest) -> str:
    """What the agent will be asked: the prompt given, else the agent's own; inputs are filled in.

    What a person types stays as it is but for the inputs that come with it: `${HOME}` may be what it is about.
    """
    if request.prompt is not None:
        if not request.prompt.strip():
            raise UsageError("the prompt is empty", hint="give one with -p TEXT or -f FILE")
        is_typed = request.trigger_type is TriggerType.MANUAL
        return fill_inputs(request.prompt, request.inputs) if is_typed else request.prompt
    if request.agent.default_prompt is not None:
        return render(request.agent.default_prompt, values_of(request.agent, request.inputs))
    raise UsageError(
        f"agent {request.agent.name!r} has no default_prompt, and none was given",
        hint=f"nightherd run {request.agent.name} -p TEXT",
    )


def values_of(agent: Agent, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The run-time values a job's templates may use."""
    values = input_values(inputs)
    if agent.repo is not None:
        values["repo"] = agent.repo
    return values


def _masked(value: Any, workshop: Workshop) -> Any:
    """An input without secrets. One that has a secret as a number becomes text: numbers cannot be masked."""
    masked = workshop.secrets.mask(value)
    text = input_text(masked)
    again = workshop.secrets.mask(text)
    return masked if again == text else again


def _change(request: SubmitRequest, prompt: str, workshop: Workshop) -> SubmitJob:
    at = workshop.clock.now()
    session = _session(request, at, generate_session_id(workshop.random_text))
    job = Job(
        id=generate_job_id(at, workshop.random_text),
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
    )
    inputs = {name: _masked(value, workshop) for name, value in request.inputs.items()}
    texts = JobTexts(job_id=job.id, prompt=prompt, inputs=inputs, overrides=request.overrides)
    return SubmitJob(
        job=job,
        texts=texts,
        session=session,
        into=request.into,
        login=login_of(request.agent, workshop.environment),
        refuses_held=request.refuses_held,
    )


def session_key_of(request: SubmitRequest) -> SessionKey:
    """What the session belongs to that the job would join."""
    return _session(request, NEVER, SessionId("")).key


def _session(request: SubmitRequest, at: datetime, session_id: SessionId) -> Session:
    agent = request.agent
    terms = request.session_terms or agent.session
    is_per_channel = terms.mode is SessionMode.PER_CHANNEL
    if is_per_channel and request.channel_id is None and request.into is None:
        raise UsageError(
            f"agent {agent.name!r} keeps one session for each channel, and no channel was given",
            hint=f"nightherd run {agent.name} --channel ID",
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
        runtime_type=agent.runtime.value,
        working_directory=agent.working_directory,
        operation=agent.operation,
        created_at=at,
        last_active_at=at,
    )


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
