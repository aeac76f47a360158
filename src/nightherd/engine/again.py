"""Again: the same work once more, as a new job."""

from __future__ import annotations

from nightherd.engine.submit import SubmitRequest, submit
from nightherd.engine.workshop import Workshop
from nightherd.errors import JobNotFoundError, RefusedError
from nightherd.model.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.job import Job
from nightherd.model.overrides import for_another_try
from nightherd.model.scheduled import session_terms


async def retry_job(
    job_id: JobId,
    agent: Agent,
    workshop: Workshop,
    *,
    dedupe_key: str | None = None,
    refuses_held: bool = False,
) -> Job:
    """A new job that asks `agent` for what the ended job `job_id` was asked; one for each dedupe key.

    It is held to what that one was held to, and is of its schedule and in its channel. It is nobody's child.
    """
    job, texts = workshop.reader.find_job(job_id), workshop.reader.find_texts(job_id)
    if job is None or texts is None:
        raise JobNotFoundError(f"there is no job {job_id}")
    if not job.is_terminal:
        raise RefusedError(f"job {job_id} is {job.status}", hint=f"nightherd jobs cancel {job_id}")
    if not workshop.can_run(agent.runtime):
        raise RefusedError(f"runtime {agent.runtime.value!r} is not available here")
    schedule = agent.schedules.get(job.schedule) if job.schedule is not None else None
    session = workshop.reader.find_session(job.session_id) if job.session_id is not None else None
    request = SubmitRequest(
        agent=agent,
        prompt=texts.prompt,
        inputs=texts.inputs,
        schedule=schedule.name if schedule is not None else None,
        session_terms=session_terms(agent, schedule) if schedule is not None else None,
        channel_id=session.channel_id if session is not None else None,
        overrides=for_another_try(texts.overrides),
        priority=job.priority,
        dedupe_key=dedupe_key,
        refuses_held=refuses_held,
    )
    return (await submit(request, workshop)).job
