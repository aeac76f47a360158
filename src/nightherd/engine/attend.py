"""Attend: be there while a job is done, by this process or by another worker."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from nightherd.engine.execution import Stopper, execute
from nightherd.engine.oversight import oversee
from nightherd.engine.recorder import OnEvent
from nightherd.engine.workshop import Workshop
from nightherd.errors import (
    FencedError,
    JobNotFoundError,
    NightherdError,
    NotYetError,
    RefusedError,
)
from nightherd.model.agent import Agent
from nightherd.model.change import CancelJob
from nightherd.model.ids import JobId
from nightherd.model.job import Job

LOOK_AGAIN_S = 0.2

OnWait = Callable[[str], None]


async def attend(
    job_id: JobId,
    agent: Agent,
    workshop: Workshop,
    *,
    on_event: OnEvent,
    on_wait: OnWait,
    stopper: Stopper,
) -> Job:
    """Execute the job as soon as it may be, or follow it when another worker took it; the job as it ended.

    `on_wait` is told once why it has to wait. Stopped, the job is cancelled, whoever has it.
    """
    is_told, seen = False, 0
    while True:
        if stopper.reason is not None:
            await workshop.state.apply([CancelJob(job_id=job_id, at=workshop.clock.now())])
        try:
            return await _execute(job_id, agent, workshop, on_event=on_event, stopper=stopper)
        except NotYetError as error:
            if not is_told:
                on_wait(error.message)
                is_told = True
        except FencedError:
            raise
        except RefusedError:
            job = workshop.reader.find_job(job_id)
            if job is None:
                raise JobNotFoundError(f"there is no job {job_id}") from None
            for event in workshop.journals.read(job_id, after=seen):
                seen = event.seq
                on_event(event)
            if job.is_terminal:
                return job
        await anyio.sleep(LOOK_AGAIN_S)


async def _execute(
    job_id: JobId, agent: Agent, workshop: Workshop, *, on_event: OnEvent, stopper: Stopper
) -> Job:
    """Execute the job, overseen: others may cancel it, and a lost lease ends it."""
    job: Job | None = None
    failure: NightherdError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(oversee, {job_id: stopper}, workshop)
        try:
            job = await execute(job_id, agent, workshop, on_event=on_event, stopper=stopper)
        except NightherdError as error:
            failure = error  # out of the task group as itself, not as a group
        tasks.cancel_scope.cancel()
    if job is None:
        raise failure or NightherdError("the job was neither done nor refused")
    return job
