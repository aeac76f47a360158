"""Going on in a session: with the job that was cut off in it, if there is one, else with a new one."""

from __future__ import annotations

from nightherd.engine.resuming import Rescue, Wish, go_on_in, resume_job
from nightherd.engine.workshop import Workshop
from nightherd.errors import RefusedError
from nightherd.model.agent import Agent
from nightherd.model.ids import SessionId
from nightherd.model.job import Job, JobStatus


async def resume_session(
    session_id: SessionId,
    agent: Agent,
    wish: Wish,
    workshop: Workshop,
    *,
    rescue: Rescue,
    dedupe_key: str | None = None,
) -> Job:
    """The job that goes on: a suspended or interrupted one of the session, else a new one in it.

    Without a prompt there is no new one beside an open job or after a completed one: `RefusedError`. With a prompt,
    the new one waits its turn while another job runs. A new one is made once for each dedupe key.
    """
    jobs = workshop.reader.jobs_of_session(session_id)
    made = [job for job in jobs if dedupe_key is not None and job.dedupe_key == dedupe_key]
    if made:
        return made[-1]
    last = jobs[-1] if jobs else None
    if last is not None and wish.prompt is None:
        if not last.is_terminal:
            return await resume_job(last.id, agent, wish, workshop, rescue=rescue)
        _check_not_completed(session_id, last)
    elif last is not None and last.status is JobStatus.SUSPENDED:
        # A job that only lost its worker is not asked anything new: what is to be said to it is a job of its own.
        try:
            return await resume_job(last.id, agent, wish, workshop, rescue=rescue)
        except RefusedError:
            pass  # somebody is at it already: the new job comes after it
    return await go_on_in(session_id, agent, wish, workshop, dedupe_key=dedupe_key)


def _check_not_completed(session_id: SessionId, last: Job) -> None:
    if last.status is JobStatus.COMPLETED:
        raise RefusedError(
            f"session {session_id}: its last job {last.id} is completed; to resume it is to start a new job",
            hint=f"nightherd session resume {session_id} -p TEXT",
        )
