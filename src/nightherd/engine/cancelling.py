"""Cancelling a job from outside: at once where nobody runs it, else by the worker that does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from anyio import to_thread

from nightherd.engine.answer_stream import write_leftover
from nightherd.engine.execution import job_of
from nightherd.engine.record import Record
from nightherd.engine.spawning import cancel_below
from nightherd.engine.state_files import write_stopped
from nightherd.engine.workshop import ThreadFiles, Workshop
from nightherd.errors import RefusedError
from nightherd.model.change import CancelJob, Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.job import Job
from nightherd.views.jobs import get_job


async def cancel_job(
    job_id: JobId,
    room: Workshop | Record,
    threads: ThreadFiles | None,
    *,
    rescue: Callable[[], Awaitable[object]],
) -> Job:
    """The job, ended with all below it, or about to be stopped by its worker; `RefusedError` when it had ended."""
    (answer,) = await room.state.apply([CancelJob(job_id=job_id, at=room.clock.now())])
    if isinstance(answer, Refused) and answer.why is Why.STATUS:
        raise RefusedError(answer.message, hint=f"nightherd jobs show {job_id}")
    job = job_of(answer)
    if not job.is_terminal:
        # A worker that is gone stops nothing: then the job ends here, as cancelled.
        await rescue()
        job = get_job(room.reader, job_id)
    if job.is_terminal:
        # A job that was waiting for its next execution may have left the text of an answer.
        await to_thread.run_sync(write_leftover, job, room)
        await cancel_below(job_id, room)
        await write_stopped(job_id, room, threads)
    return job
