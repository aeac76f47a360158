"""The checks that rows and journals agree: what looks, and what mends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nightherd.engine.doctor import Check, OnStep
from nightherd.engine.orphans import adopt_orphans, orphans
from nightherd.engine.reconcile import (
    DamagedBodies,
    Known,
    correct,
    damaged_journals,
    disagreements,
    no_bodies,
    no_one_knows,
)
from nightherd.engine.record import KillMarked, Record
from nightherd.engine.state_files import write_stopped
from nightherd.engine.stuck import give_up_workers, gone_workers, release, stuck_jobs
from nightherd.engine.workshop import ThreadFiles
from nightherd.model.finding import Finding
from nightherd.model.ids import JobId

LINES = "journals, every line"
ORPHANS = "journals without rows"


def record_checks(
    record: Record,
    kill_marked: KillMarked,
    on_step: OnStep,
    known: Known = no_one_knows,
    damaged_bodies: DamagedBodies = no_bodies,
    *,
    threads: Callable[[], ThreadFiles | None] = lambda: None,
) -> tuple[list[Check], list[Check]]:
    """The quick checks, and those that read every line. `threads` writes the `state.json` of a job that is ended."""

    async def end(finding: Finding) -> None:
        await release(record, kill_marked, finding)
        await write_stopped(JobId(finding.job_id or ""), record, threads())

    quick = [
        Check(
            "stuck",
            "running jobs",
            partial(stuck_jobs, record),
            end,
        ),
        Check(
            "workers",
            "workers",
            partial(gone_workers, record),
            mend_all=partial(give_up_workers, record),
        ),
        Check(
            "record", "rows and journals", partial(disagreements, record), partial(correct, record)
        ),
        Check(
            "orphans",
            ORPHANS,
            partial(orphans, record),
            mend_all=partial(adopt_orphans, record, on_job=partial(on_step, ORPHANS)),
        ),
    ]
    damaged = partial(damaged_journals, record, partial(on_step, LINES), known, damaged_bodies)
    return quick, [Check("journals", LINES, damaged, is_deep=True)]
