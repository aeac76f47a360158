"""`nightherd jobs resume` and `nightherd jobs fork`: work that goes on where a job left off, or in a branch of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from nightherd.cli.acceptance import refuse_agents
from nightherd.cli.errand import tell_launch
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.gateway import Gateway, open_gateway
from nightherd.cli.going_on import Asked, Ways, forking, see_to_it, working_options
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.limit_option import limit_option, raised_overrides, read_limits
from nightherd.cli.options import job_argument
from nightherd.cli.session_agent import agent_of_job
from nightherd.engine.forking import AtCheckpoint, AtEvent, AtMessage, ForkAt
from nightherd.engine.resume_at import resume_at
from nightherd.engine.resuming import OPEN, Wish, resume_job
from nightherd.engine.workshop import Workshop
from nightherd.errors import RefusedError, UsageError
from nightherd.model.job import Job, JobStatus
from nightherd.model.limits import LimitName, shown
from nightherd.views.jobs import find_job_id, get_job
from nightherd.wiring.memories import open_reader
from nightherd.wiring.workshops import rescuer


@click.command("resume", epilog="Example: nightherd jobs resume @last -p 'Mind the failing test'")
@job_argument
@limit_option("--raise", "raised", "What it may use from now on, as in spend=2.")
@click.option(
    "--at-checkpoint", type=click.IntRange(1), help="Go on from there, in a branch if it was left."
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
    """Go on with JOB: the same job when it was suspended or interrupted, a new one in its session when it had ended.

    One that runs, or waits for a worker, can only be given more, with --raise.
    """
    invocation, found, text = _found(ctx, job, asked)
    if raised:
        refuse_agents(invocation, "--raise")
    fleet = load_fleet_told(invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True)
    agent = agent_of_job(found, invocation, fleet)

    overrides = raised_overrides(_kept(invocation, found), raised)
    wish = Wish(prompt=text, overrides=overrides, refuses_held=True)

    def hand_in(gateway: Gateway) -> Job:
        return gateway.resume(found.id, agent, wish, at_checkpoint=at_checkpoint)

    async def go_on(workshop: Workshop) -> Job:
        rescue = rescuer(workshop, fleet)
        if at_checkpoint is not None:
            return await resume_at(found.id, at_checkpoint, agent, wish, workshop, rescue=rescue)
        return await resume_job(found.id, agent, wish, workshop, rescue=rescue)

    is_only_raised = bool(raised) and text is None and at_checkpoint is None
    if is_only_raised and found.status in OPEN:
        amended = hand_in(open_gateway(invocation, fleet))
        is_interrupted = found.status is JobStatus.RUNNING and amended.status is JobStatus.PENDING
        if asked.detach or not is_interrupted:
            _tell_raised(amended, raised, invocation)
            return
    if found.is_terminal and (text is not None or found.status is not JobStatus.COMPLETED):
        what = "a new job in a branch" if at_checkpoint is not None else "a new job in its session"
        invocation.screen.say(f"job {found.id} is {found.status.value}: this is {what}")
    see_to_it(ctx, fleet, agent, Ways(hand_in, go_on), asked)


@click.command(
    "fork", epilog="Example: nightherd jobs fork @last --at-message 4 -p 'Try it otherwise'"
)
@job_argument
@click.option("--at-message", type=click.IntRange(0), help="Keep messages 1 to N of its session.")
@click.option(
    "--at-seq", type=click.IntRange(0), help="Keep what had been said by this event of it."
)
@click.option("--at-checkpoint", type=click.IntRange(1), help="Keep what had been said by then.")
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
    """Do it otherwise: a new job in a branch of JOB's session, at its end or at an earlier place."""
    invocation, found, text = _found(ctx, job, asked)
    at = fork_place(found, at_message=at_message, at_seq=at_seq, at_checkpoint=at_checkpoint)
    if found.session_id is None:
        raise RefusedError(f"job {found.id} has no session to branch from")
    if found.status is JobStatus.PENDING and not found.last_seq:
        raise RefusedError(
            f"job {found.id} has not begun; there is nothing to branch from",
            hint=f"nightherd jobs show {found.id}",
        )
    session_id = found.session_id
    fleet = load_fleet_told(invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True)
    agent = agent_of_job(found, invocation, fleet)
    ways = forking(session_id, at, agent, Wish(prompt=text))
    see_to_it(ctx, fleet, agent, ways, asked)


def fork_place(
    job: Job, *, at_message: int | None, at_seq: int | None, at_checkpoint: int | None
) -> ForkAt:
    """The one place that was named, else where the job left its session."""
    given = [value for value in (at_message, at_seq, at_checkpoint) if value is not None]
    if len(given) > 1:
        raise UsageError("--at-message, --at-seq and --at-checkpoint exclude each other")
    if at_message is not None:
        return AtMessage(number=at_message)
    if at_checkpoint is not None:
        return AtCheckpoint(number=at_checkpoint, job_id=job.id)
    return AtEvent(seq=at_seq if at_seq is not None else job.last_seq, job_id=job.id)


def _found(ctx: click.Context, reference: str, asked: Asked) -> tuple[Invocation, Job, str | None]:
    """The job that is meant, and what is said besides."""
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    with closing(open_reader(invocation.state_directory())) as reader:
        job = get_job(reader, find_job_id(reader, reference))
    return invocation, job, text


def _tell_raised(job: Job, raised: Sequence[str], invocation: Invocation) -> None:
    """What a job may use that goes on without anybody here."""
    if invocation.screen.is_json or job.status is not JobStatus.RUNNING:
        tell_launch(job, invocation)
    limits = read_limits(raised, option="--raise")
    more = ", ".join(f"{name} {shown(LimitName(name), most)}" for name, most in limits.items())
    invocation.screen.say(f"job {job.id} is {job.status.value}, and may use {more} from now on")


def _kept(invocation: Invocation, job: Job) -> Mapping[str, Any]:
    """What the job has other than its agent."""
    with closing(open_reader(invocation.state_directory())) as reader:
        texts = reader.find_texts(job.id)
    return texts.overrides if texts is not None else {}
