"""`nightherd jobs` and `jobs list`: the list of jobs, once or refreshed, and what other commands share with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from nightherd.cli.invocation import (
    Invocation,
    agent_filter,
    before_option,
    json_option,
    page_option,
    query_argument,
    status_option,
    watch,
    watch_option,
)
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import (
    PAGE,
    Screen,
    length,
    neutralise,
    next_page,
    one_line,
    status_cell,
    table,
)
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob, next_text
from nightherd.model.units import format_usd
from nightherd.views.jobs.jobs import job_row, list_page, observe_job, observe_jobs
from nightherd.wiring.stores import open_job_list, system_clock

if TYPE_CHECKING:
    from nightherd.model.worker import Worker


def is_at_work(worker: Worker) -> bool:
    """Whether the worker's lease holds and its process is there; loaded when there is a running job to ask about."""
    from nightherd.wiring.machine import is_at_work as is_at_work_

    return bool(is_at_work_(worker))


def refresh_lost(invocation: Invocation, jobs: Sequence[ObservedJob]) -> None:
    """Bring the readable files up to date if one of `jobs` is lost. A process that keeps them does it by itself."""
    from nightherd.wiring.files import refresh_mirror, refresh_state_files

    lost = [job.id for job in jobs if job.lost is not None]
    if lost:
        state = invocation.state_directory()
        refresh_mirror(state, is_new=False)
        refresh_state_files(state, lost)


JSON_HINT = "nightherd jobs --json for one list; nightherd jobs tail JOB -f --json to follow a job"


@click.group(
    "jobs",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.jobs.list:list_jobs", "List jobs."),
        "show": Entry("nightherd.cli.jobs.show:show", "Show a job."),
        "cancel": Entry(
            "nightherd.cli.jobs.cancel:cancel",
            "Cancel a job, or every open job that a filter fits.",
        ),
        "resume": Entry("nightherd.cli.jobs.actions:resume", "Resume a job."),
        "fork": Entry("nightherd.cli.jobs.actions:fork", "Fork a job at an earlier message."),
        "retry": Entry(
            "nightherd.cli.jobs.cancel:retry",
            "Submit a job's work again, or that of every failed job that a filter fits.",
        ),
        "tail": Entry("nightherd.cli.jobs.show:tail", "Show a job's events."),
        "export": Entry("nightherd.cli.jobs.export:export", "Export a job to a file."),
        "outline": Entry("nightherd.cli.jobs.outline:outline", "Show the outline of a job."),
        "config": Entry("nightherd.cli.jobs.settings:config", "Show the settings a job ran with."),
        "apply": Entry("nightherd.cli.jobs.land:apply", "Apply a job's changes to your files."),
        "merge": Entry("nightherd.cli.jobs.land:merge", "Merge a job's changes into a branch."),
        "push": Entry("nightherd.cli.jobs.land:push", "Push a job's changes to a remote."),
        "diff": Entry("nightherd.cli.jobs.diff:diff", "Show what a job changed."),
    },
    default="list",
    epilog="Example: nightherd jobs --watch",
)
def jobs() -> None:
    """List, show, follow and control jobs. JOB is an id, a unique prefix or end of one, @last or @last-failed."""


@click.command("list", epilog="Example: nightherd jobs list status:failed since:2d 'cost:>1'")
@query_argument
@agent_filter
@status_option(JobStatus, "jobs")
@page_option(PAGE)
@before_option
@watch_option
@json_option
@click.pass_obj
def list_jobs(
    invocation: Invocation,
    words: tuple[str, ...],
    agent: str | None,
    status: str | None,
    limit: int,
    before: int | None,
    is_watched: bool,
) -> None:
    """List jobs. The newest come first.

    QUERY narrows the list: agent, status, schedule, session, trigger, run, cost, since and until, each as KEY:VALUE,
    and words of the summary or error. Separate several values of a key by commas.
    """
    screen = invocation.screen
    query = JobQuery(
        agent=agent, status=JobStatus(status) if status else None, before=before, limit=limit
    )
    if is_watched:
        draw = partial(_draw, invocation, query, words)
        watch(screen, draw, command="nightherd jobs", json_hint=JSON_HINT)
        return
    now = system_clock().now()
    jobs, next_before = _read(invocation, _narrowed(query, words, now), now)
    if screen.is_json:
        screen.document("jobs", [job_row(job) for job in jobs], now, next_before=next_before)
        return
    if not jobs:
        is_filtered = bool(agent or status or before or words)
        screen.say("no such jobs" if is_filtered else "no jobs yet")
        screen.say("  try: " + ("nightherd jobs" if is_filtered else "nightherd run AGENT -p TEXT"))
        return
    screen.show(job_table(jobs, screen, now))
    if next_before is not None:
        screen.flush()
        command = next_page(
            "nightherd jobs list", next_before, limit, words, agent=agent, status=status
        )
        screen.say(f"more: {neutralise(command)}")


def _read(
    invocation: Invocation, query: JobQuery, now: datetime
) -> tuple[Sequence[ObservedJob], int | None]:
    """Return a page of jobs, and the cursor of the next page if there is one."""
    with closing(open_job_list(invocation.state_directory())) as reader:
        page = list_page(reader, query)
        jobs = observe_jobs(reader, page.jobs, is_at_work, now)
    refresh_lost(invocation, jobs)
    return jobs, page.next_before


def _narrowed(query: JobQuery, words: Sequence[str], now: datetime) -> JobQuery:
    """The query with the filter that `words` spell."""
    if not words:
        return query
    from nightherd.model.jobs.filter import parse_job_filter

    return replace(query, filter=parse_job_filter(" ".join(words), now))


def _draw(invocation: Invocation, query: JobQuery, words: Sequence[str]) -> str:
    now = system_clock().now()
    jobs, _ = _read(invocation, _narrowed(query, words, now), now)
    return job_table(jobs, invocation.screen, now) if jobs else "no such jobs"


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
            one_line(_phase(job) + _about(job, screen, now), SUMMARY_LIMIT),
        )
        for job in jobs
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def _phase(job: ObservedJob) -> str:
    """The run and phase that a job is of, before its summary."""
    return "" if job.node_id is None else f"{job.node_id}: "


def _about(job: ObservedJob, screen: Screen, now: datetime) -> str:
    if job.lost is not None:
        return f"lost its worker; {next_text(job.lost, command_for)}"
    if job.resumes_at is not None and job.suspend_reason is not None:
        when = screen.when(job.resumes_at, now)
        return f"{job.suspend_reason.value}, resumes {when}: {job.error or ''}"
    if job.waits_behind is not None:
        from nightherd.model.sessions.order import ahead_text

        return ahead_text(job.waits_behind, screen.time, command_for)
    return job.error or job.summary or ""


def why_text(job: Job) -> str:
    """Why the job ended or waits, in brackets; empty while it does neither."""
    reason = job.exit_reason or job.suspend_reason
    return f" ({reason.value})" if reason is not None else ""
