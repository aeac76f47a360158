"""`nightherd session import`: a session from a file that `session export` wrote."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from nightherd.cli.import_command import fleet_if_any
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.engine.adopt_session import AdoptedSession, SessionFile, adopt_session
from nightherd.imports.session_file import read_session_file
from nightherd.model.text import counted
from nightherd.views.sessions import session_row
from nightherd.wiring.care import open_desk
from nightherd.wiring.memories import system_clock


@click.command("import", epilog="Example: nightherd session import session.json")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would be imported.")
@json_option
@click.pass_obj
def import_session(invocation: Invocation, file: Path, is_dry: bool) -> None:
    """A session from a file that `session export` wrote, with every job in it. Done again, it changes nothing."""
    found = read_session_file(invocation.cwd / file)
    adopted = anyio.run(_adopt, invocation, found, is_dry)
    screen, now = invocation.screen, system_clock().now()
    session = adopted.session
    if screen.is_json:
        data = {**session_row(session), "jobs_imported": adopted.jobs, "is_new": adopted.is_new}
        screen.document("session", data, now)
        return
    screen.show(session.id)
    screen.flush()
    if not adopted.is_new:
        screen.say("it is here already")
        return
    verb = "would be imported" if is_dry else "imported"
    screen.say(f"{verb} with {counted(adopted.jobs, 'job')}")
    screen.say(f"  go on in it: nightherd session resume {session.id} -p TEXT")


async def _adopt(invocation: Invocation, file: SessionFile, is_dry: bool) -> AdoptedSession:
    state, fleet = invocation.new_state_directory(), fleet_if_any(invocation)
    async with open_desk(state, fleet, invocation.environ, is_dry=is_dry) as desk:
        return await adopt_session(file, desk)
