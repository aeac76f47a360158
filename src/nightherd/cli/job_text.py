"""Jobs as tables and lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from nightherd.cli.lost import is_at_work
from nightherd.cli.render import Screen, status_cell, table
from nightherd.cli.text import length, one_line
from nightherd.model.job import Job
from nightherd.model.lost import ObservedJob
from nightherd.model.money import format_usd
from nightherd.model.session_order import ahead_text
from nightherd.views.observed import observe_job
from nightherd.wiring.memories import open_job_list

HEADING = ("ID", "AGENT", "STATUS", "CREATED", "TOOK", "TURNS", "COST", "SUMMARY")
SPARE = ("TURNS", "TOOK", "CREATED")
SUMMARY_LIMIT = 100


def observed(job: Job, state: Path, now: datetime) -> ObservedJob:
    """The job with what is true of it now."""
    with closing(open_job_list(state)) as reader:
        return observe_job(reader, job, is_at_work, now)


def job_table(jobs: Sequence[ObservedJob], screen: Screen, now: datetime) -> str:
    """One line per job, with how long workers have worked at it."""
    rows = [
        (
            job.id,
            job.agent,
            status_cell(job.status.value if job.lost is None else "lost"),
            screen.when(job.created_at, now),
            length(job.worked),
            str(job.turns),
            format_usd(job.cost_microusd),
            one_line(_about(job, screen, now), SUMMARY_LIMIT),
        )
        for job in jobs
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def _about(job: ObservedJob, screen: Screen, now: datetime) -> str:
    if job.lost is not None:
        return f"lost its worker; {job.lost.next}"
    if job.resumes_at is not None and job.suspend_reason is not None:
        when = screen.when(job.resumes_at, now)
        return f"{job.suspend_reason.value}, resumes {when}: {job.error or ''}"
    if job.waits_behind is not None:
        return ahead_text(job.waits_behind)
    return job.error or job.summary or ""


def happening(word: str, job: Job, now: datetime, state: Path) -> str:
    """What a worker says of a job; once it is done with it, also how the job stands and what it took."""
    said = f"{word} {job.id} {job.agent}"
    if word != "ended":
        return said
    took = length(observed(job, state, now).worked)
    cost = format_usd(job.cost_microusd)
    return f"{said}, {job.status.value}{'' if job.is_terminal else why_text(job)}, {cost}, {took}"


def why_text(job: Job) -> str:
    """Why the job ended or waits, in brackets; empty while it does neither."""
    reason = job.exit_reason or job.suspend_reason
    return f" ({reason.value})" if reason is not None else ""
