"""Oversight: running jobs are stopped when somebody wants them to end, or when they are no longer ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from nightherd.engine.stopper import Stopper
from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.job import ExitReason

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

    `wait` comes back within the seconds it is given.
    """
    while workshop.lease.holds(workshop.clock.monotonic()):
        if running:
            for job_id in _unwanted(workshop):
                if job_id in running:
                    running[job_id].stop(ExitReason.CANCELLED)
        await wait(LOOK_S if running else IDLE_LOOK_S)
    for stopper in list(running.values()):
        stopper.abandon()


def _unwanted(workshop: Workshop) -> Sequence[JobId]:
    try:
        return workshop.reader.jobs_to_cancel(workshop.worker)
    except NightherdError:
        # Who cannot read now asks again soon; the jobs go on, and whoever writes says what is wrong.
        return ()
