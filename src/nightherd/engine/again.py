"""Again: the same work once more, as a new job."""

from __future__ import annotations

from nightherd.engine.submit import SubmitRequest, submit
from nightherd.engine.workshop import Workshop
from nightherd.errors import JobNotFoundError, RefusedError
from nightherd.model.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.job import Job


async def retry_job(
    job_id: JobId, agent: Agent, workshop: Workshop, *, dedupe_key: str | None = None
) -> Job:
    """A new job that asks `agent` for what the ended job `job_id` was asked; one for each dedupe key."""
    job, texts = workshop.reader.find_job(job_id), workshop.reader.find_texts(job_id)
    if job is None or texts is None:
        raise JobNotFoundError(f"there is no job {job_id}")
    if not job.is_terminal:
        raise RefusedError(f"job {job_id} is {job.status}", hint=f"nightherd jobs cancel {job_id}")
    if not workshop.can_run(agent.runtime):
        raise RefusedError(f"runtime {agent.runtime.value!r} is not available here")
    request = SubmitRequest(
        agent=agent,
        prompt=texts.prompt,
        inputs=texts.inputs,
        priority=job.priority,
        dedupe_key=dedupe_key,
    )
    return (await submit(request, workshop)).job
