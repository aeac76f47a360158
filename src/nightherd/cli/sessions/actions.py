"""`nightherd session use`, `rename` and `cleanup`: small changes to sessions that are there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import click
from msgspec.structs import replace

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.sessions.options import named_session, session_argument
from nightherd.engine.operations.requests import UpdateSession
from nightherd.engine.operations.sessions import update_session
from nightherd.engine.sessions.cleanup import Cleanup, clean_up
from nightherd.errors import ConfigError
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.model.units import parse_duration
from nightherd.views.sessions import session_row
from nightherd.wiring.stores import known_secrets, open_repair, system_clock


@click.command("use", epilog="Example: nightherd session use sess-a1b2c3d4")
@session_argument
@json_option
@click.pass_obj
def use(invocation: Invocation, session: str) -> None:
    """Make a session the agent's current one. The next job of the agent (and channel) continues there."""
    found = named_session(invocation, session)
    used = _update(invocation, UpdateSession(session_id=found.id, is_current=True))
    _tell(invocation, used, f"the next job of {used.agent} continues in {used.id}")


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
    _tell(invocation, renamed, said)


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


def _tell(invocation: Invocation, session: Session, said: str) -> None:
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
        data = {
            "is_dry_run": is_dry,
            "removed": [one.id for one in done.removed],
            "kept": [one.id for one in done.kept],
        }
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
