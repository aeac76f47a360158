"""A call that a limit cuts off is told as that: no worker was lost."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.resuming import resume
from engine.limits.turns import turn
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import SystemEvent, ToolResultEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.testing.runtime import PlayedRuntime


def test_a_call_that_a_limit_of_time_cut_off_does_not_blame_a_lost_worker() -> None:
    limited = replace(AGENT, limits=Limits(duration=timedelta(milliseconds=30)))
    bench = Bench(PlayedRuntime(turn(1)[:-1], is_endless=True), limited)

    job = bench.run()
    bench.runtime = PlayedRuntime()
    ended = resume(bench, job, duration=3_600_000)

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "duration_exceeded")
    assert ended.status is JobStatus.COMPLETED
    events = bench.journal(job.id)
    (result,) = [one for one in events if isinstance(one, ToolResultEvent)]
    assert result.error == (
        "interrupted: the job was suspended (duration_exceeded) while this ran,"
        " its outcome is unknown"
    )
    subtypes = [one.subtype for one in events if isinstance(one, SystemEvent)]
    assert SystemSubtype.RECOVERED not in subtypes
