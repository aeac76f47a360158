"""Letting a job go on with other limits."""

from __future__ import annotations

import anyio

from engine.bench import Bench
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.options import JobOptions


def resume(bench: Bench, job: Job, **limits: int) -> Job:
    change = ResumeJob(job_id=job.id, at=bench.clock.now(), overrides=JobOptions(limits=limits))
    anyio.run(bench.store.apply, [change])
    return bench.execute(job.id)
