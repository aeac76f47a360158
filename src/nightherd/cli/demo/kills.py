"""The demo's kills: a job whose worker is killed twice."""

from __future__ import annotations

from nightherd.cli.demo.context import DemoContext
from nightherd.cli.demo.stage import CHECK_COUNT, CHECKS, KILLED_AT, REPOSITORY
from nightherd.cli.jobs.command import Finished
from nightherd.errors import NightherdError
from nightherd.model.jobs.job import JobStatus
from nightherd.model.limits.limits import LimitName

INSPECTOR = "inspector"
"""Whose worker is killed."""
RAISED = "2.00"
"""The new maximum of what it may spend."""


def survive_kills(demo: DemoContext) -> Finished:
    """Run a detached job: kill its worker, suspend it at its limit, raise that, kill again; no check runs twice."""
    job_id = demo.detach(INSPECTOR)
    _kill(demo, KILLED_AT[0])
    demo.go_on()
    waiting = demo.find(job_id)
    if (waiting.job.status, waiting.job.error_code) != (JobStatus.SUSPENDED, LimitName.SPEND.code):
        raise NightherdError(f"the demo's job {job_id} does not wait at its limit")
    demo.show_result(waiting)
    demo.show(f"  {waiting.job.error}")
    command = ("jobs", "resume", job_id, "--raise", f"spend={RAISED}")
    _kill(demo, KILLED_AT[1], *command)
    demo.go_on()
    demo.head(f"cat {REPOSITORY}/{CHECKS}: every check ran, and none of them twice")
    counted = demo.workers.checks()
    demo.show("\n".join(counted))
    if counted != [f"check {number}" for number in range(1, CHECK_COUNT + 1)]:
        raise NightherdError(f"the checks are wrong: {counted}")
    finished = demo.find(job_id)
    if finished.job.status is not JobStatus.COMPLETED:
        raise NightherdError(f"the demo's job {job_id} did not resume")
    demo.show_result(finished)
    return finished


def _kill(demo: DemoContext, check: int, *command: str) -> None:
    typed = [" ".join(("nightherd", *command))] if command else []
    demo.head(demo.workers.kill_title(*typed))
    demo.workers.kill_one(check, *command)
    demo.show(f"killed in the middle of check {check} of {CHECK_COUNT}; the job got no signal")
