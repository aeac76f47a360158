"""`nightherd jobs cancel` and `nightherd jobs retry`: what can be done to a job that is there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from nightherd.cli.errand import tell_launch
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.gateway import open_gateway
from nightherd.cli.invocation import Invocation
from nightherd.cli.job_text import observed
from nightherd.cli.options import job_argument, json_option
from nightherd.model.ids import JobId
from nightherd.views.jobs import find_job_id, job_row
from nightherd.wiring.memories import open_reader, system_clock


@click.command("cancel", epilog="Example: nightherd jobs cancel @last")
@job_argument
@json_option
@click.pass_obj
def cancel(invocation: Invocation, job: str) -> None:
    """End a job. One that waits ends at once; one that runs is stopped by its worker."""
    state = invocation.state_directory()
    cancelled = open_gateway(invocation).cancel(_find(state, job))
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("job", job_row(observed(cancelled, state, now)), now)
        return
    if cancelled.is_terminal:
        screen.show(f"cancelled {cancelled.id}")
    else:
        screen.show(f"{cancelled.id} is being stopped by its worker")
        screen.flush()
        screen.say(f"watch: nightherd jobs tail {cancelled.id} -f")


@click.command("retry", epilog="Example: nightherd jobs retry @last-failed")
@job_argument
@json_option
@click.pass_obj
def retry(invocation: Invocation, job: str) -> None:
    """Ask for the same work once more, as a new job that waits for a worker."""
    state = invocation.state_directory()
    job_id = _find(state, job)
    fleet = load_fleet_told(invocation)
    tell_launch(open_gateway(invocation, fleet).retry(job_id), invocation)


def _find(state: Path, reference: str) -> JobId:
    with closing(open_reader(state)) as reader:
        return find_job_id(reader, reference)
