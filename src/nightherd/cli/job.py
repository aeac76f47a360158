"""`nightherd jobs show`: everything about one job."""

from __future__ import annotations

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.job_text import job_card
from nightherd.cli.options import job_argument, json_option
from nightherd.views.jobs import find_job_id, job_document, show_job
from nightherd.wiring import open_reader, system_clock


@click.command("show", epilog="Example: nightherd jobs show @last")
@job_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, job: str) -> None:
    """One job: prompt, result, cost, executions."""
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    reader = open_reader(state)
    try:
        view = show_job(reader, find_job_id(reader, job))
    finally:
        reader.close()
    if screen.is_json:
        screen.document("job", job_document(view, now), now)
        return
    screen.show(job_card(view, screen, now))
    screen.flush()
    screen.say(f"events: nightherd jobs tail {view.job.id}")
