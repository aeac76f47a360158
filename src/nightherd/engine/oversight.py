"""Oversight: running jobs are stopped when somebody wants them to end, or when they are no longer ours.

What they have used so far is written to their rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from nightherd.engine.progress import save_progress
from nightherd.engine.stopper import Stopper
from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.job import ExitReason, Job

LOOK_S = 0.2
IDLE_LOOK_S = 0.5
"""While nothing runs, only the lease is looked at."""


async def oversee(
    running: Mapping[JobId, Stopper],
    workshop: Workshop,
    *,
    wait: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Watch over `running`, which may change meanwhile, until the lease is lost: then all are abandoned.

    What the jobs have used is written to their rows on the way, and their `state.json` once it is due.
    `wait` comes back within the seconds it is given.
    """
    async with anyio.create_task_group() as writers:
        while workshop.lease.holds(workshop.clock.monotonic()):
            if running:
                for job_id in _jobs_to_cancel(workshop):
                    if job_id in running:
                        running[job_id].stop(ExitReason.CANCELLED)
                await save_progress(list(running.values()), workshop)
                _write_due_files(running.values(), writers)
            await wait(LOOK_S if running else IDLE_LOOK_S)
        for stopper in list(running.values()):
            stopper.abandon()


def _write_due_files(running: Iterable[Stopper], writers: TaskGroup) -> None:
    """Write each in a task of its own: a long conversation takes a while, and cancelling must not wait for it."""
    for stopper in running:
        if stopper.state_file is not None and stopper.state_file.is_due:
            writers.start_soon(stopper.state_file.write_due)


def is_cancel_requested(job: Job, workshop: Workshop) -> bool:
    """Return whether this worker is to cancel the job, or a job above it that it does a part of."""
    requested = _jobs_to_cancel(workshop)
    if not requested:
        return False
    above: Job | None = job
    while above is not None and above.id not in requested:
        parent_id = above.parent_job_id
        above = workshop.reader.find_job(parent_id) if parent_id is not None else None
    return above is not None


def _jobs_to_cancel(workshop: Workshop) -> Sequence[JobId]:
    try:
        return workshop.reader.jobs_to_cancel(workshop.worker)
    except NightherdError:
        # Who cannot read now asks again soon; the jobs go on, and whoever writes says what is wrong.
        return ()
