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

    While another job runs in it, the new one waits its turn. A new one is made once for each dedupe key.
    """
    jobs = workshop.reader.jobs_of_session(session_id)
    last = jobs[-1] if jobs else None
    # A job that only lost its worker is not asked anything new: what is to be said to it is a job of its own.
    is_cut_off = last is not None and (
        last.status is JobStatus.SUSPENDED or (not last.is_terminal and wish.prompt is None)
    )
    if last is not None and is_cut_off:
        try:
            return await resume_job(last.id, agent, wish, workshop, rescue=rescue)
        except RefusedError:
            pass  # somebody is at it already: the new job comes after it
    return await go_on_in(session_id, agent, wish, workshop, dedupe_key=dedupe_key)
