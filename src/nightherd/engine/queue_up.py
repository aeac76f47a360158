"""Queue up: jobs of one session run one after the other; this one waits until it is its turn."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from nightherd.engine.execution import Stopper, execute
from nightherd.engine.recorder import OnEvent
from nightherd.engine.workshop import Workshop
from nightherd.errors import JobNotFoundError, SessionBusyError
from nightherd.model.agent import Agent
from nightherd.model.change import Applied, CancelJob
from nightherd.model.ids import JobId
from nightherd.model.job import Job

LOOK_AGAIN_S = 0.2


async def execute_in_turn(
    job_id: JobId,
    agent: Agent,
    workshop: Workshop,
    *,
    on_event: OnEvent,
    on_wait: Callable[[str], None],
    stopper: Stopper,
) -> Job:
    """`execute` once no other job is active in the session; `on_wait` is told once why it waits.

    Stopped while it waits, the job is cancelled without having run.
    """
    is_told = False
    while stopper.reason is None:
        try:
            return await execute(job_id, agent, workshop, on_event=on_event, stopper=stopper)
        except SessionBusyError as error:
            if not is_told:
                on_wait(error.message)
                is_told = True
        await anyio.sleep(LOOK_AGAIN_S)
    (answer,) = await workshop.state.apply([CancelJob(job_id=job_id, at=workshop.clock.now())])
    job = answer.job if isinstance(answer, Applied) else workshop.reader.find_job(job_id)
    if job is None:
        raise JobNotFoundError(f"there is no job {job_id}")
    return job
