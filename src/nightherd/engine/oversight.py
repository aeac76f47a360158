"""Oversight: running jobs are stopped when somebody wants them to end, or when they are no longer ours."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from nightherd.engine.execution import Stopper
from nightherd.engine.workshop import Workshop
from nightherd.model.ids import JobId
from nightherd.model.job import ExitReason

LOOK_S = 0.2


async def oversee(running: Mapping[JobId, Stopper], workshop: Workshop) -> None:
    """Watch over `running`, which may change meanwhile, until the lease is lost: then all are abandoned."""
    while not workshop.lease.is_lost:
        if running:
            for job_id in workshop.reader.jobs_to_cancel(workshop.worker):
                if job_id in running:
                    running[job_id].stop(ExitReason.CANCELLED)
        await anyio.sleep(LOOK_S)
    for stopper in list(running.values()):
        stopper.abandon()
