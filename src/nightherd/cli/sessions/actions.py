"""`nightherd session fork`, `resume`, `use`, `rename` and `cleanup`: commands that make a session, continue one or change one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import click
from msgspec.structs import replace

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, complete_agents, invocation_of, json_option
from nightherd.cli.jobs.command import find_agent, run_or_enqueue
from nightherd.cli.prompt import Asked, inputs_option, read_inputs, working_options
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
from nightherd.engine.operations.requests import Fork, ForkOf, ResumeSession, Submit, UpdateSession
from nightherd.engine.operations.sessions import update_session
from nightherd.engine.sessions.cleanup import Cleanup, clean_up
from nightherd.errors import ConfigError, UsageError
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.session import Session, is_over
from nightherd.model.text import counted
from nightherd.model.units import parse_duration
from nightherd.views.sessions.sessions import cleanup_document, latest_of_agent, session_row
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import known_secrets, open_repair, system_clock


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
@inputs_option
@working_options
@click.pass_context
def fork(  # noqa: PLR0913 (an option each)
    ctx: click.Context,
    session: str,
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    is_run: bool,
    agent: str | None,
    inputs: tuple[str, ...],
    asked: Asked,
) -> None:
    """Fork a session. The new session starts with SESSION's messages, up to its end or an earlier point."""
    invocation = invocation_of(ctx)
    at, values = place_given(at_message, at_seq, at_checkpoint), read_inputs(inputs)
    if not is_run and (asked.is_anything or values):
        raise UsageError(
            "--prompt, --file, --input, --detach and --quiet are for a fork that is --run"
        )
    if not is_run and agent is not None:
        raise UsageError("--agent is for a fork that is --run")
    original = imported_session(invocation, session)
    if is_run:
        _run(ctx, original, at, agent, asked, values)
        return
    made = anyio.run(_fork, invocation, Fork(session_id=original.id, at=at))
    show_fork(invocation, made)


async def _fork(invocation: Invocation, request: Fork) -> Session:
    state_dir = invocation.state_directory()
    async with open_fleet_context(state_dir, None, invocation.environ) as context:
        return (await operations.fork(request, context)).session


def _run(
    ctx: click.Context,
    original: Session,
    at: ForkAt | None,
    named: str | None,
    asked: Asked,
    values: dict[str, str],
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
        Submit(agent=agent.name, prompt=prompt, inputs=values, session=session),
        detach=asked.detach,
        quiet=asked.quiet,
    )


def show_fork(invocation: Invocation, made: Session) -> None:
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


@click.command("use", epilog="Example: nightherd session use sess-a1b2c3d4")
@session_argument
@json_option
@click.pass_obj
def use(invocation: Invocation, session: str) -> None:
    """Make a session the agent's current one. The next job of the agent (and channel) continues there."""
    found = named_session(invocation, session)
    used = _update(invocation, UpdateSession(session_id=found.id, is_current=True))
    _show_session(invocation, used, f"the next job of {used.agent} continues in {used.id}")


@click.command("rename", epilog="Example: nightherd session rename @last 'the parser'")
@session_argument
@click.argument("name", metavar="[NAME]", required=False)
@json_option
@click.pass_obj
def rename(invocation: Invocation, session: str, name: str | None) -> None:
    """Rename a session. Without NAME, its name is removed."""
    found = named_session(invocation, session)
    renamed = _update(invocation, UpdateSession(session_id=found.id, name=name or ""))
    called = renamed.name
    said = f"{renamed.id} is called {called!r}" if called else f"{renamed.id} has no name"
    _show_session(invocation, renamed, said)


def _secrets(invocation: Invocation) -> Secrets:
    """What may not be in a name: as far as the fleet file can be read, what that knows too."""
    try:
        fleet = load_fleet_with_notices(invocation, is_quiet=True)
    except ConfigError:
        fleet = None
    return known_secrets(fleet, invocation.environ, invocation.state_directory())


def _update(invocation: Invocation, request: UpdateSession) -> Session:
    """Return the session after the change."""

    async def update() -> Session:
        async with open_repair(invocation.state_directory()) as record:
            return await update_session(request, replace(record, secrets=_secrets(invocation)))

    return anyio.run(update)


def _show_session(invocation: Invocation, session: Session, said: str) -> None:
    screen = invocation.screen
    if screen.is_json:
        screen.document("session", session_row(session), system_clock().now())
    else:
        screen.show(said)


@click.command("cleanup", epilog="Example: nightherd session cleanup --older-than 7d --dry-run")
@click.option(
    "--older-than",
    metavar="DURATION",
    help="Clean up every ended session that was not used for this long, also completed ones.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would be cleaned up and change nothing."
)
@json_option
@click.pass_obj
def cleanup(invocation: Invocation, older_than: str | None, is_dry: bool) -> None:
    """Clean up expired sessions. Their records stay; sessions that can be resumed are never touched."""
    age = parse_duration(older_than) if older_than is not None else None
    state = invocation.state_directory()
    done = anyio.run(_clean_up, state, age, is_dry)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        data = cleanup_document(done.removed, done.kept, is_dry_run=is_dry)
        screen.document("session_cleanup", data, now)
        return
    for one in done.removed:
        screen.show(one.id)
    screen.flush()
    verb = "would be cleaned up" if is_dry else "cleaned up"
    screen.say(f"{counted(len(done.removed), 'session')} {verb}")
    for one in done.kept:
        screen.say(f"  {one.id} is in use and was kept")


async def _clean_up(state: Path, age: timedelta | None, is_dry: bool) -> Cleanup:
    async with open_repair(state) as record:
        return await clean_up(record, older_than=age, is_dry=is_dry)
