"""Submit: from a request to a recorded job. Nothing runs before the job is durable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError, RefusedError, UsageError
from nightherd.model.agent import Agent
from nightherd.model.change import Applied, Refused, SubmitJob, Why
from nightherd.model.ids import SessionId, generate_job_id, generate_session_id
from nightherd.model.job import Job, JobStatus, JobTexts
from nightherd.model.session import Session, SessionStatus
from nightherd.model.template import render
from nightherd.model.trigger import TriggerType

ID_TRIES = 8
"""How often a taken id is replaced by a new one; two in a row is already a one in a thousand million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
    """A piece of work asked of an agent."""

    agent: Agent
    prompt: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str | None = None
    schedule: str | None = None
    priority: int = 0
    dedupe_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The job that stands for the request; `is_new` is false when the same work was known already."""

    job: Job
    is_new: bool


async def submit(request: SubmitRequest, workshop: Workshop) -> Submitted:
    """Record the job and return once it is durable. The same dedupe key never makes a second job."""
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
            case Refused(message=message):
                raise RefusedError(message)
    raise NightherdError(f"no free job id after {ID_TRIES} tries")


def prompt_of(request: SubmitRequest) -> str:
    """What the agent will be asked: the given prompt as it is, else the agent's own with values filled in."""
    if request.prompt is not None:
        if not request.prompt.strip():
            raise UsageError("the prompt is empty", hint="give one with -p TEXT or -f FILE")
        return request.prompt
    if request.agent.default_prompt is not None:
        return render(request.agent.default_prompt, values_of(request.agent, request.inputs))
    raise UsageError(
        f"agent {request.agent.name!r} has no default_prompt, and none was given",
        hint=f"nightherd run {request.agent.name} -p TEXT",
    )


def values_of(agent: Agent, inputs: Mapping[str, str]) -> dict[str, str]:
    """The run-time values a job's templates may use."""
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    if agent.repo is not None:
        values["repo"] = agent.repo
    return values


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
    )
    inputs = {name: str(workshop.secrets.mask(value)) for name, value in request.inputs.items()}
    return SubmitJob(
        job=job, texts=JobTexts(job_id=job.id, prompt=prompt, inputs=inputs), session=session
    )


def _session(request: SubmitRequest, at: datetime, session_id: SessionId) -> Session:
    agent = request.agent
    return Session(
        id=session_id,
        agent=agent.name,
        mode=agent.session_mode,
        status=SessionStatus.CREATED,
        runtime_type=agent.runtime.value,
        working_directory=agent.working_directory,
        created_at=at,
        last_active_at=at,
    )
