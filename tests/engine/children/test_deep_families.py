"""An agent that asks itself, and that one itself again: somewhere there is an end, also where nobody set one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.children.test_spawning import HELPING, ask, bench_of, children
from nightherd.engine.children import DEEPEST
from nightherd.model.agents.script import Say
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.jobs.options import JobOptions, ParentLimits
from nightherd.model.journal.event import ToolResultEvent


@pytest.mark.parametrize(("levels", "made"), [(DEEPEST - 1, 1), (DEEPEST, 0)])
def test_there_is_a_level_below_which_no_more_jobs_are_made(
    tmp_path: Path, levels: int, made: int
) -> None:
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING)
    ids = (JobId(f"job-2025-01-01-{level:06d}") for level in range(levels))
    above = (ParentLimits(job=job_id, limits={}) for job_id in ids)

    job = bench.run(overrides=JobOptions(within=tuple(above)))

    assert job.status is JobStatus.COMPLETED
    assert len(children(bench, job)) == made
    (answer,) = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert answer.success is bool(made)
