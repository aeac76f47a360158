"""`nightherd jobs cancel` and `nightherd jobs retry`: what can be done to a job that is there."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from nightherd.cli.errand import find_agent
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import job_argument, json_option
from nightherd.engine.again import retry_job
from nightherd.engine.record import get_job
from nightherd.engine.rescue import rescue
from nightherd.engine.spawning import cancel_below
from nightherd.errors import NotFoundError, RefusedError
from nightherd.model.agent import Fleet
from nightherd.model.change import Applied, CancelJob, Refused
from nightherd.model.ids import JobId
from nightherd.model.job import Job
from nightherd.views.jobs import find_job_id, job_row
from nightherd.wiring import (
    open_reader,
    open_record,
    open_workshop,
    rescue_terms,
    system_clock,
)


@click.command("cancel", epilog="Example: nightherd jobs cancel @last")
@job_argument
@json_option
@click.pass_obj
def cancel(invocation: Invocation, job: str) -> None:
    """End a job. One that waits ends at once; one that runs is stopped by its worker."""
    state = invocation.state_directory()
    cancelled = anyio.run(_cancel, state, _find(state, job))
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("job", job_row(cancelled, now), now)
        return
    if cancelled.is_terminal:
        screen.show(f"cancelled {cancelled.id}")
    else:
        screen.show(f"{cancelled.id} is being stopped by its worker")
        screen.flush()
        screen.say(f"watch: nightherd jobs tail {cancelled.id} -f")


async def _cancel(state: Path, job_id: JobId) -> Job:
    async with open_record(state) as record:
        (answer,) = await record.state.apply([CancelJob(job_id=job_id, at=record.clock.now())])
        if isinstance(answer, Applied):
            # A worker that is gone stops nothing; its job ends here, as cancelled.
            await rescue(record, rescue_terms(0), is_wanted=lambda job: job.id == job_id)
            ended = get_job(record, job_id)
            if ended.is_terminal:
                await cancel_below(job_id, record)
            return ended
    match answer:
        case Refused(message=message):
            raise RefusedError(message, hint=f"nightherd jobs show {job_id}")
        case _:
            raise NotFoundError(f"there is no job {job_id}")


@click.command("retry", epilog="Example: nightherd jobs retry @last-failed")
@job_argument
@json_option
@click.pass_obj
def retry(invocation: Invocation, job: str) -> None:
    """Ask for the same work once more, as a new job that waits for a worker."""
    state = invocation.state_directory()
    job_id = _find(state, job)
    fleet = load_fleet_told(invocation)
    again = anyio.run(_retry, invocation, state, fleet, job_id)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("job", job_row(again, now), now)
        return
    screen.show(again.id)
    screen.flush()
    screen.say("it waits for a worker: nightherd worker --until-idle")


async def _retry(invocation: Invocation, state: Path, fleet: Fleet, job_id: JobId) -> Job:
    async with open_workshop(state, fleet, invocation.environ) as workshop:
        job = workshop.reader.find_job(job_id)
        if job is None:
            raise NotFoundError(f"there is no job {job_id}")
        return await retry_job(job_id, find_agent(fleet, job.agent), workshop)


def _find(state: Path, reference: str) -> JobId:
    reader = open_reader(state)
    try:
        return find_job_id(reader, reference)
    finally:
        reader.close()
