"""`nightherd session fork`: a new session that begins as another did, up to a place."""

from __future__ import annotations

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.command import find_agent, run_or_enqueue
from nightherd.cli.options import complete_agents
from nightherd.cli.prompt import Asked, working_options
from nightherd.cli.sessions.options import (
    agent_for,
    agent_option,
    imported_session,
    named_session,
    place_given,
    reading,
    session_argument,
)
from nightherd.engine.operations import sessions as operations
from nightherd.engine.operations.fork import ForkAt
from nightherd.engine.operations.requests import Fork, ForkOf, ResumeSession, Submit
from nightherd.errors import UsageError
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.sessions.session import Session, is_over
from nightherd.views.sessions import latest_of_agent, session_row
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import system_clock


@click.command("fork", epilog="Example: nightherd session fork @last --at-message 5")
@session_argument
@click.option("--at-message", type=int, metavar="N", help="Keep messages 1 to N; 0 keeps none.")
@click.option(
    "--at-seq", type=int, metavar="N", help="Keep messages up to event N of its last job."
)
@click.option(
    "--at-checkpoint",
    type=int,
    metavar="N",
    help="Keep messages up to checkpoint N of its last job.",
)
@click.option("--run", "is_run", is_flag=True, help="Also run a job in the fork.")
@agent_option
@working_options
@click.pass_context
def fork(
    ctx: click.Context,
    session: str,
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    is_run: bool,
    agent: str | None,
    asked: Asked,
) -> None:
    """Fork a session. The new session starts with SESSION's messages, up to its end or an earlier point."""
    invocation = invocation_of(ctx)
    at = place_given(at_message, at_seq, at_checkpoint)
    if not is_run and asked.is_anything:
        raise UsageError("--prompt, --file, --detach and --quiet are for a fork that is --run")
    if not is_run and agent is not None:
        raise UsageError("--agent is for a fork that is --run")
    original = imported_session(invocation, session)
    if is_run:
        _run(ctx, original, at, agent, asked)
        return
    made = anyio.run(_fork, invocation, Fork(session_id=original.id, at=at))
    tell_fork(invocation, made)


async def _fork(invocation: Invocation, request: Fork) -> Session:
    state_dir = invocation.state_directory()
    async with open_fleet_context(state_dir, None, invocation.environ) as context:
        return await operations.fork(request, context)


def _run(
    ctx: click.Context, original: Session, at: ForkAt | None, named: str | None, asked: Asked
) -> None:
    invocation = invocation_of(ctx)
    prompt = asked.text(invocation)
    fleet = load_fleet_with_notices(
        invocation, agent=named or original.agent, is_quiet=asked.quiet, is_run=True
    )
    agent = agent_for(original, fleet, named)
    session = ForkOf(session_id=original.id, at=at)
    run_or_enqueue(
        ctx,
        fleet,
        Submit(agent=agent.name, prompt=prompt, session=session),
        detach=asked.detach,
        quiet=asked.quiet,
    )


def tell_fork(invocation: Invocation, made: Session) -> None:
    """The new session: its id is what comes out."""
    screen = invocation.screen
    if screen.is_json:
        screen.document("session", session_row(made), system_clock().now())
        return
    screen.show(made.id)
    screen.flush()
    screen.say(f"forked from {made.parent_session_id} after message {made.base_messages}")
    screen.say(f"  continue it: nightherd session resume {made.id} -p TEXT")


@click.command("resume", epilog="Example: nightherd session resume @last -p 'Now the tests'")
@session_argument
@agent_option
@working_options
@click.pass_context
def resume(
    ctx: click.Context,
    session: str,
    agent: str | None,
    asked: Asked,
) -> None:
    """Resume a session. Continues the job that was suspended or interrupted in it, else starts a new job.

    After a completed job, -p is required. A session that has ended is continued in a fork.
    """
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    found = named_session(invocation, session)
    _resume(ctx, found, text, agent, asked)


@click.command("resume", epilog="Example: nightherd agent resume coder")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@working_options
@click.pass_context
def agent_resume(
    ctx: click.Context,
    agent: str,
    asked: Asked,
) -> None:
    """Resume an agent's latest session. Works like `session resume`."""
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    find_agent(load_fleet_with_notices(invocation, agent=agent, is_quiet=True), agent)
    with reading(invocation) as reader:
        found = latest_of_agent(reader, agent)
    _resume(ctx, found, text, None, asked)


def _resume(
    ctx: click.Context, session: Session, prompt: str | None, named: str | None, asked: Asked
) -> None:
    invocation = invocation_of(ctx)
    fleet = load_fleet_with_notices(
        invocation, agent=named or session.agent, is_quiet=asked.quiet, is_run=True
    )
    agent = agent_for(session, fleet, named)
    request = ResumeSession(
        session_id=session.id, agent=agent.name, prompt=prompt, refuses_held=True
    )
    with reading(invocation) as reader:
        jobs = reader.jobs_of_session(session.id)
    notice = _new_job_notice(session, jobs[-1] if jobs else None, prompt)
    if notice is not None:
        invocation.screen.say(notice)
    run_or_enqueue(ctx, fleet, request, detach=asked.detach, quiet=asked.quiet)


def _new_job_notice(session: Session, last: Job | None, prompt: str | None) -> str | None:
    """Return what to say before a new job starts; None when the last job is resumed, or refused."""
    if last is None:
        return f"session {session.id} has no job yet: this is a new job in it"
    stands = f"job {last.id} is {last.status.value}"
    if not last.is_terminal:
        is_new = prompt is not None and last.status is not JobStatus.SUSPENDED
        return f"{stands}: this is a new job that waits for it" if is_new else None
    if prompt is None and last.status is JobStatus.COMPLETED:
        return None
    where = "a branch of its" if is_over(session) else "its"
    return f"{stands}: this is a new job in {where} session"
