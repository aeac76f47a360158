"""`nightherd session resume` and `nightherd agent resume`: work that goes on in a session."""

from __future__ import annotations

import sys

import click

from nightherd.cli.complete import complete_agents
from nightherd.cli.errand import find_agent
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.cli.job_resume import see_to_it, working_options
from nightherd.cli.prompt import read_prompt
from nightherd.cli.session_options import named_session, reading, session_argument
from nightherd.cli.session_takeover import CLAUDE, take_in, taken_session
from nightherd.engine.resuming import Wish
from nightherd.engine.session_resume import resume_session
from nightherd.engine.workshop import Workshop
from nightherd.model.job import Job
from nightherd.model.session import Session
from nightherd.views.sessions import latest_of_agent
from nightherd.wiring import rescuer


@click.command("resume", epilog="Example: nightherd session resume @last -p 'Now the tests'")
@session_argument
@working_options
@click.pass_context
def resume(
    ctx: click.Context,
    session: str,
    prompt: str | None,
    file: str | None,
    detach: bool,
    quiet: bool,
) -> None:
    """Go on in SESSION: with the job that was cut off in it, else with a new one. What is over is gone on with in a fork."""
    invocation = invocation_of(ctx)
    text = prompt_given(invocation, prompt, file)
    _resume(ctx, named_session(invocation, session), text, detach=detach, quiet=quiet)


@click.command("resume", epilog="Example: nightherd agent resume coder")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@working_options
@click.pass_context
def agent_resume(
    ctx: click.Context,
    agent: str,
    prompt: str | None,
    file: str | None,
    detach: bool,
    quiet: bool,
) -> None:
    """Go on in the session that AGENT used last."""
    invocation = invocation_of(ctx)
    text = prompt_given(invocation, prompt, file)
    find_agent(load_fleet_told(invocation, agent=agent, is_quiet=True), agent)
    with reading(invocation) as reader:
        found = latest_of_agent(reader, agent)
    _resume(ctx, found, text, detach=detach, quiet=quiet)


def _resume(
    ctx: click.Context, session: Session, prompt: str | None, *, detach: bool, quiet: bool
) -> None:
    fleet = load_fleet_told(invocation_of(ctx), agent=session.agent, is_quiet=quiet)
    agent = find_agent(fleet, session.agent)
    if session.runtime_type in CLAUDE and session.runtime_session_id is not None:
        # Somebody may have gone on with it by hand: what they said comes before what is said now.
        taken = take_in(invocation_of(ctx), session)
        session = taken_session(invocation_of(ctx), session, taken)

    async def go_on(workshop: Workshop) -> Job:
        rescue = rescuer(workshop, fleet)
        wish = Wish(prompt=prompt)
        return await resume_session(session.id, agent, wish, workshop, rescue=rescue)

    see_to_it(ctx, fleet, agent, go_on, detach=detach, quiet=quiet)


def prompt_given(invocation: Invocation, prompt: str | None, file: str | None) -> str | None:
    """What was said, if anything."""
    if prompt is None and file is None:
        return None
    return read_prompt(prompt, file, None, cwd=invocation.cwd, stdin=sys.stdin.buffer)


def invocation_of(ctx: click.Context) -> Invocation:
    """What this call of the command was given."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None  # noqa: S101 (the group above puts it there)
    return invocation
