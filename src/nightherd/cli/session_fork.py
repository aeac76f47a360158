"""`nightherd session fork`: a new session that begins as another did, up to a place."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.going_on import Asked, forking, see_to_it, working_options
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.session_agent import agent_for
from nightherd.cli.session_options import agent_option, session_argument, told_session
from nightherd.engine.forking import (
    AtCheckpoint,
    AtEvent,
    AtMessage,
    ForkAt,
    find_point,
    fork_session,
)
from nightherd.engine.resuming import Wish
from nightherd.errors import UsageError
from nightherd.model.session import Session
from nightherd.views.sessions import session_row
from nightherd.wiring.memories import open_record, random_text, system_clock


@click.command("fork", epilog="Example: nightherd session fork @last --at-message 5")
@session_argument
@click.option("--at-message", type=int, metavar="N", help="Keep messages 1 to N; 0 keeps none.")
@click.option("--at-seq", type=int, metavar="N", help="Keep what its last job had said by event N.")
@click.option(
    "--at-checkpoint", type=int, metavar="N", help="Keep what its last job had said by then."
)
@click.option("--run", "is_run", is_flag=True, help="Also give the fork a job, and watch it.")
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
    """A new session that begins with what SESSION had said, at its end or at an earlier place. SESSION is not touched."""
    invocation = invocation_of(ctx)
    at = place_given(at_message, at_seq, at_checkpoint)
    if not is_run and asked.is_anything:
        raise UsageError("--prompt, --file, --detach and --quiet are for a fork that is --run")
    if not is_run and agent is not None:
        raise UsageError("--agent is for a fork that is --run")
    original = told_session(invocation, session)
    if is_run:
        _run(ctx, original, at, agent, asked)
        return
    state = invocation.state_directory()
    made = anyio.run(_fork, state, original, at)
    tell_fork(invocation, made)


def place_given(
    at_message: int | None, at_seq: int | None, at_checkpoint: int | None
) -> ForkAt | None:
    """The one place that was named; None for the end."""
    if sum(given is not None for given in (at_message, at_seq, at_checkpoint)) > 1:
        raise UsageError("--at-message, --at-seq and --at-checkpoint exclude each other")
    if at_message is not None:
        return AtMessage(number=at_message)
    if at_seq is not None:
        return AtEvent(seq=at_seq)
    return AtCheckpoint(number=at_checkpoint) if at_checkpoint is not None else None


async def _fork(state: Path, original: Session, at: ForkAt | None) -> Session:
    async with open_record(state) as record:
        point = find_point(record.reader, record.journals, original, at)
        return await fork_session(
            original, point, state=record.state, clock=record.clock, random_text=random_text()
        )


def _run(
    ctx: click.Context, original: Session, at: ForkAt | None, named: str | None, asked: Asked
) -> None:
    invocation = invocation_of(ctx)
    wish = Wish(prompt=asked.text(invocation))
    fleet = load_fleet_told(
        invocation, agent=named or original.agent, is_quiet=asked.quiet, is_run=True
    )
    agent = agent_for(original, fleet, named)
    see_to_it(ctx, fleet, agent, forking(original.id, at, agent, wish), asked)


def tell_fork(invocation: Invocation, made: Session) -> None:
    """The new session: its id is what comes out."""
    screen = invocation.screen
    if screen.is_json:
        screen.document("session", session_row(made), system_clock().now())
        return
    screen.show(made.id)
    screen.flush()
    screen.say(f"forked from {made.parent_session_id} after message {made.base_messages}")
    screen.say(f"  go on in it: nightherd session resume {made.id} -p TEXT")
