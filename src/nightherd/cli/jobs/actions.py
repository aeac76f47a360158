"""`nightherd jobs cancel` and `nightherd jobs retry`: what can be done to a job that is there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.command import run_or_enqueue, tell_launch
from nightherd.cli.jobs.list import observed
from nightherd.cli.limits.options import limit_option, read_limits
from nightherd.cli.operations import open_client
from nightherd.cli.options import job_argument, json_option
from nightherd.cli.prompt import Asked, working_options
from nightherd.cli.sessions.options import agent_of_job, place_given
from nightherd.engine.operations.fork import AtEvent
from nightherd.engine.operations.requests import Cancel, ForkOf, Resume, Retry, Submit
from nightherd.engine.operations.resume import OPEN
from nightherd.errors import RefusedError
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.limits.limits import LimitName, shown
from nightherd.views.jobs import find_job_id, get_job, job_row
from nightherd.wiring.stores import open_reader, system_clock


@click.command("cancel", epilog="Example: nightherd jobs cancel @last")
@job_argument
@json_option
@click.pass_obj
def cancel(invocation: Invocation, job: str) -> None:
    """Cancel a job. A queued job ends at once; a running job is stopped by its worker."""
    state = invocation.state_directory()
    cancelled = open_client(invocation).perform(Cancel(job_id=_find_job(state, job).id))
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
    """Submit a job's work again. The new job waits for a worker."""
    state = invocation.state_directory()
    ended = _find_job(state, job)
    fleet = load_fleet_with_notices(invocation, agent=ended.agent, is_run=True)
    request = Retry(job_id=ended.id, refuses_held=True)
    tell_launch(open_client(invocation, fleet).perform(request), invocation)


def _find_job(state: Path, reference: str) -> Job:
    with closing(open_reader(state)) as reader:
        return get_job(reader, find_job_id(reader, reference))


@click.command("resume", epilog="Example: nightherd jobs resume @last -p 'Mind the failing test'")
@job_argument
@limit_option("--raise", "raised", "New maximum of a limit, such as spend=2.")
@click.option(
    "--at-checkpoint",
    type=click.IntRange(1),
    help="Checkpoint to resume from; later messages are left out.",
)
@working_options
@click.pass_context
def resume(
    ctx: click.Context,
    job: str,
    raised: tuple[str, ...],
    at_checkpoint: int | None,
    asked: Asked,
) -> None:
    """Resume a job. If it was suspended or interrupted, it continues; if it has ended, a new job starts in its session.

    For a job that runs or is queued, --raise raises a limit; other options are refused.
    """
    invocation, found, text = _found(ctx, job, asked)
    fleet = load_fleet_with_notices(
        invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True
    )
    request = Resume(
        job_id=found.id,
        prompt=text,
        limits=read_limits(raised, option="--raise") or {},
        at_checkpoint=at_checkpoint,
        refuses_held=True,
    )
    is_only_raised = bool(raised) and text is None and at_checkpoint is None
    if is_only_raised and found.status in OPEN:
        amended = open_client(invocation, fleet).perform(request)
        is_interrupted = found.status is JobStatus.RUNNING and amended.status is JobStatus.PENDING
        if asked.detach or not is_interrupted:
            _tell_raised(amended, request.limits, invocation)
            return
    if found.is_terminal and (text is not None or found.status is not JobStatus.COMPLETED):
        what = "a new job in a branch" if at_checkpoint is not None else "a new job in its session"
        invocation.screen.say(f"job {found.id} is {found.status.value}: this is {what}")
    run_or_enqueue(ctx, fleet, request, detach=asked.detach, quiet=asked.quiet)


@click.command(
    "fork", epilog="Example: nightherd jobs fork @last --at-message 4 -p 'Try another way'"
)
@job_argument
@click.option("--at-message", type=click.IntRange(0), help="Keep messages 1 to N of the session.")
@click.option("--at-seq", type=click.IntRange(0), help="Keep messages up to this event of the job.")
@click.option(
    "--at-checkpoint", type=click.IntRange(1), help="Keep messages up to this checkpoint."
)
@working_options
@click.pass_context
def fork(
    ctx: click.Context,
    job: str,
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    asked: Asked,
) -> None:
    """Fork a job at an earlier message. The new job runs in a fork of JOB's session, by default at its end."""
    invocation, found, text = _found(ctx, job, asked)
    named = place_given(at_message, at_seq, at_checkpoint, job_id=found.id)
    at = named or AtEvent(seq=found.last_seq, job_id=found.id)
    if found.session_id is None:
        raise RefusedError(f"job {found.id} has no session to fork")
    if found.status is JobStatus.PENDING and not found.last_seq:
        raise RefusedError(
            f"job {found.id} has not started; there is nothing to fork",
            hint=f"nightherd jobs show {found.id}",
        )
    fleet = load_fleet_with_notices(
        invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True
    )
    agent = agent_of_job(found, invocation, fleet)
    session = ForkOf(session_id=found.session_id, at=at)
    run_or_enqueue(
        ctx,
        fleet,
        Submit(agent=agent.name, prompt=text, session=session),
        detach=asked.detach,
        quiet=asked.quiet,
    )


def _found(ctx: click.Context, reference: str, asked: Asked) -> tuple[Invocation, Job, str | None]:
    """The job, and the options of the command."""
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    return invocation, _find_job(invocation.state_directory(), reference), text


def _tell_raised(job: Job, limits: Mapping[str, int], invocation: Invocation) -> None:
    """Show the limits of a job that another process continues."""
    if invocation.screen.is_json or job.status is not JobStatus.RUNNING:
        tell_launch(job, invocation)
    more = ", ".join(f"{name} {shown(LimitName(name), most)}" for name, most in limits.items())
    invocation.screen.say(f"job {job.id} is {job.status.value}, and may use {more} from now on")
