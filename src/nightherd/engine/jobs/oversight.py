"""Stopper: stops an execution from outside, and shows what it has used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.recorder import save_progress
from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job

if TYPE_CHECKING:
    from nightherd.engine.checkpoints.state_files import StateFile
    from nightherd.engine.jobs.recorder import Progress


class Stopper:
    """The runtime is cancelled, and the job ends with the reason given."""

    def __init__(self) -> None:
        self.reason: ExitReason | None = None
        self.is_abandoned = False
        self.is_handed_over = False
        self.scope = anyio.CancelScope()
        self.progress: Progress | None = None
        """What the execution has used and is to be written; None before it has begun."""
        self.state_file: StateFile | None = None
        """The file that shows the job at its last checkpoint; None when none is kept on the way."""

    def stop(self, reason: ExitReason) -> None:
        """Stop now; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self.scope.cancel()

    def hand_over(self) -> None:
        """Stop now and give the job back: it waits for another worker, which continues it."""
        if self.reason is None:
            self.is_handed_over = True
            self.scope.cancel()

    def reuse(self) -> None:
        """Be ready for the next execution of the job, after this one was abandoned.

        A stop or a hand-over that was asked for meanwhile still counts.
        """
        self.is_abandoned = False
        self.scope = anyio.CancelScope()
        if self.reason is not None or self.is_handed_over:
            self.scope.cancel()

    def abandon(self) -> None:
        """Stop now and settle nothing: the job is another worker's, or will be."""
        self.is_abandoned = True
        self.scope.cancel()


LOOK_S = 0.2
IDLE_LOOK_S = 0.5
"""While nothing runs, only the lease is looked at."""


async def oversee(
    running: Mapping[JobId, Stopper],
    context: WorkerContext,
    *,
    wait: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Watch over `running`, which may change meanwhile, until the lease is lost: then all are abandoned.

    What the jobs have used is written to their rows on the way, and their `state.json` once it is due.
    `wait` comes back within the seconds it is given.
    """
    async with anyio.create_task_group() as writers:
        while context.lease.holds(context.clock.monotonic()):
            if running:
                for job_id in _jobs_to_cancel(context):
                    if job_id in running:
                        running[job_id].stop(ExitReason.CANCELLED)
                await save_progress(list(running.values()), context)
                _write_due_files(running.values(), writers)
            await wait(LOOK_S if running else IDLE_LOOK_S)
        for stopper in list(running.values()):
            stopper.abandon()


def _write_due_files(running: Iterable[Stopper], writers: TaskGroup) -> None:
    """Write each in a task of its own: a long conversation takes a while, and cancelling must not wait for it."""
    for stopper in running:
        if stopper.state_file is not None and stopper.state_file.is_due:
            writers.start_soon(stopper.state_file.write_due)


def is_cancel_requested(job: Job, context: WorkerContext) -> bool:
    """Return whether this worker is to cancel the job, or a job above it that it does a part of."""
    requested = _jobs_to_cancel(context)
    if not requested:
        return False
    above: Job | None = job
    while above is not None and above.id not in requested:
        parent_id = above.parent_job_id
        above = context.reader.find_job(parent_id) if parent_id is not None else None
    return above is not None


def _jobs_to_cancel(context: WorkerContext) -> Sequence[JobId]:
    try:
        return context.reader.jobs_to_cancel(context.worker)
    except NightherdError:
        # A failed read is repeated soon; the jobs continue, and the writer reports what is wrong.
        return ()
