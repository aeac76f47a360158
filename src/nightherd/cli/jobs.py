"""`nightherd jobs`: what was asked for and what became of it. Synchronous, and cheap to start."""

from __future__ import annotations

from contextlib import closing

import click

from nightherd.cli.complete import complete_agents
from nightherd.cli.invocation import Invocation
from nightherd.cli.job_text import job_table
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.lost import is_at_work, refresh_lost
from nightherd.cli.options import json_option
from nightherd.cli.text import PAGE, neutralise, next_page
from nightherd.model.job import JobQuery, JobStatus
from nightherd.views.jobs import job_row, list_page
from nightherd.views.observed import observe_jobs
from nightherd.wiring.memories import open_job_list, system_clock

MOST = 1_000


@click.group(
    "jobs",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.jobs:list_jobs", "The newest jobs; also just `jobs`."),
        "show": Entry("nightherd.cli.job:show", "One job: prompt, result, cost, executions."),
        "cancel": Entry("nightherd.cli.job_actions:cancel", "End a job, wherever it runs."),
        "resume": Entry("nightherd.cli.job_resume:resume", "Go on where a job left off."),
        "fork": Entry("nightherd.cli.job_resume:fork", "Do it otherwise, from an earlier place."),
        "retry": Entry("nightherd.cli.job_actions:retry", "The same work once more, as a new job."),
        "tail": Entry("nightherd.cli.tail:tail", "A job's events; -f follows to its end."),
    },
    default="list",
    epilog="Example: nightherd jobs --status failed",
)
def jobs() -> None:
    """List, show and follow jobs. A JOB is an id, a unique prefix or end of one, @last or @last-failed."""


@click.command("list", epilog="Example: nightherd jobs list --agent hello --limit 5")
@click.option("--agent", metavar="AGENT", shell_complete=complete_agents, help="Only this agent's.")
@click.option(
    "--status",
    type=click.Choice([status.value for status in JobStatus]),
    help="Only jobs that stand so.",
)
@click.option("--limit", type=click.IntRange(1, MOST), default=PAGE, help="At most so many (20).")
@click.option("--before", type=click.IntRange(1), metavar="CURSOR", help="The page after this one.")
@json_option
@click.pass_obj
def list_jobs(
    invocation: Invocation, agent: str | None, status: str | None, limit: int, before: int | None
) -> None:
    """The newest jobs, newest first."""
    screen, now = invocation.screen, system_clock().now()
    query = JobQuery(
        agent=agent, status=JobStatus(status) if status else None, before=before, limit=limit
    )
    with closing(open_job_list(invocation.state_directory())) as reader:
        page = list_page(reader, query)
        found = observe_jobs(reader, page.jobs, is_at_work, now)
    refresh_lost(invocation, found)
    if screen.is_json:
        rows = [job_row(job) for job in found]
        screen.document("jobs", rows, now, next_before=page.next_before)
        return
    if not page.jobs:
        is_filtered = agent is not None or status is not None or before is not None
        screen.say("no such jobs" if is_filtered else "no jobs yet")
        screen.say("  try: " + ("nightherd jobs" if is_filtered else "nightherd run AGENT -p TEXT"))
        return
    screen.show(job_table(found, screen, now))
    if page.next_before is not None:
        screen.flush()
        command = next_page(
            "nightherd jobs list", page.next_before, limit, agent=agent, status=status
        )
        screen.say(f"more: {neutralise(command)}")
