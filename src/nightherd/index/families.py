"""Families: for which schedule, workflow run and agents a job works. A child job works for what its parent works for."""

from __future__ import annotations

import msgspec

from nightherd.db.connection import Database
from nightherd.model.costs.fold import RowTotals

FIND_FAMILY = "SELECT agent, above, schedule, run_id FROM jobs WHERE job_id = ?"
FIND_SCHEDULE = "SELECT schedule FROM runs WHERE run_id = ?"
NOTE_JOB = (
    "INSERT INTO jobs (job_id, agent, noted, is_live, schedule, run_id, above, totals)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (job_id) DO UPDATE SET noted = excluded.noted, is_live = excluded.is_live,"
    " schedule = excluded.schedule, run_id = excluded.run_id, above = excluded.above,"
    " totals = excluded.totals"
)
NOTE_RUN = (
    "INSERT INTO runs (run_id, workflow, schedule) VALUES (?, ?, ?)"
    " ON CONFLICT (run_id) DO UPDATE SET workflow = excluded.workflow, schedule = excluded.schedule"
)


class NotedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the feed says of a job: its last change, whether it runs then, and what it is part of."""

    agent: str
    change: int
    is_live: bool
    parent_id: str | None = None
    run_id: str | None = None
    schedule: str | None = None
    """AGENT/NAME."""
    totals: RowTotals = RowTotals()


class NotedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the feed says of a workflow run."""

    workflow: str
    root_id: str | None = None
    """The first run of its tree, where that is another one."""
    schedule: str | None = None


def note_run(database: Database, run_id: str, run: NotedRun) -> None:
    """Inside a transaction: note a run."""
    schedule = run.schedule
    if schedule is None and run.root_id is not None:
        schedule = _schedule_of(database, run.root_id)
    database.execute(NOTE_RUN, (run_id, run.workflow, schedule))


def note_job(database: Database, job_id: str, job: NotedJob) -> None:
    """Inside a transaction: note a job. Its parent and its run were noted before, as they are recorded before it."""
    schedule, run_id = job.schedule, job.run_id
    above: list[str] = []
    family = database.execute(FIND_FAMILY, (job.parent_id,)) if job.parent_id is not None else []
    if family:
        agent, others, of_parent, run_of_parent = family[0]
        agents = {str(agent), *(msgspec.json.decode(str(others)) if others is not None else ())}
        above = sorted(agents - {job.agent})
        schedule = schedule if schedule is not None else _text(of_parent)
        run_id = run_id if run_id is not None else _text(run_of_parent)
    if schedule is None and run_id is not None:
        schedule = _schedule_of(database, run_id)
    values = (
        job_id,
        job.agent,
        job.change,
        int(job.is_live),
        schedule,
        run_id,
        msgspec.json.encode(above).decode() if above else None,
        msgspec.json.encode(job.totals),
    )
    database.execute(NOTE_JOB, values)


def _schedule_of(database: Database, run_id: str) -> str | None:
    found = database.execute(FIND_SCHEDULE, (run_id,))
    return _text(found[0][0]) if found else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
