"""`nightherd session resume` and `nightherd agent resume`: work that goes on in a session."""

from __future__ import annotations

import click

from nightherd.cli.complete import complete_agents
from nightherd.cli.errand import find_agent
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.gateway import Gateway
from nightherd.cli.going_on import Asked, Ways, see_to_it, working_options
from nightherd.cli.invocation import invocation_of
from nightherd.cli.session_agent import agent_for
from nightherd.cli.session_options import (
    agent_option,
    named_session,
    reading,
    session_argument,
)
from nightherd.engine.resuming import Wish
from nightherd.engine.session_resume import resume_session
from nightherd.engine.workshop import Workshop
from nightherd.model.job import Job, JobStatus
from nightherd.model.session import SESSION_LIFECYCLE, Session
from nightherd.views.sessions import latest_of_agent
from nightherd.wiring.workshops import rescuer


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
    """Resume the job that was suspended or interrupted in SESSION, else start a new one in it.

    After a completed job that needs -p. A session that is over is continued in a fork.
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
    """Resume the session that AGENT used last, as `session resume` does."""
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    find_agent(load_fleet_told(invocation, agent=agent, is_quiet=True), agent)
    with reading(invocation) as reader:
        found = latest_of_agent(reader, agent)
    _resume(ctx, found, text, None, asked)


def _resume(
    ctx: click.Context, session: Session, prompt: str | None, named: str | None, asked: Asked
) -> None:
    invocation = invocation_of(ctx)
    fleet = load_fleet_told(
        invocation, agent=named or session.agent, is_quiet=asked.quiet, is_run=True
    )
    agent, wish = agent_for(session, fleet, named), Wish(prompt=prompt, refuses_held=True)

    def hand_in(gateway: Gateway) -> Job:
        return gateway.resume_session(session.id, agent, wish)

    async def go_on(workshop: Workshop) -> Job:
        rescue = rescuer(workshop, fleet)
        return await resume_session(session.id, agent, wish, workshop, rescue=rescue)

    with reading(invocation) as reader:
        jobs = reader.jobs_of_session(session.id)
    notice = _new_job_notice(session, jobs[-1] if jobs else None, prompt)
    if notice is not None:
        invocation.screen.say(notice)
    see_to_it(ctx, fleet, agent, Ways(hand_in, go_on), asked)


def _new_job_notice(session: Session, last: Job | None, prompt: str | None) -> str | None:
    """Return what to say before a new job starts; None when the last job is resumed, or refused."""
    if last is None:
        return f"session {session.id} has no job yet: this is a new job in it"
    stands = f"job {last.id} is {last.status.value}"
    if not last.is_terminal:
        is_new = prompt is not None and last.status is not JobStatus.SUSPENDED
        return f"{stands}: this is a new job, which waits for it" if is_new else None
    if prompt is None and last.status is JobStatus.COMPLETED:
        return None
    is_over = session.status in SESSION_LIFECYCLE.terminal or session.removed_at is not None
    return f"{stands}: this is a new job in {'a branch of its' if is_over else 'its'} session"
