"""What the session commands share: how a session is named, and where it is found."""

from __future__ import annotations

from contextlib import closing

import click

from nightherd.cli.complete import complete_agents, complete_sessions
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import Command
from nightherd.model.session import Session
from nightherd.ports import StateReader
from nightherd.views.sessions import find_session
from nightherd.wiring.memories import open_reader


def session_argument(command: Command) -> Command:
    """A session: our id or its runtime's, a unique prefix of one, or `@last`."""
    return click.argument("session", metavar="SESSION", shell_complete=complete_sessions)(command)


def agent_option(command: Command) -> Command:
    """Who goes on in a session that came from elsewhere."""
    return click.option(
        "--agent",
        metavar="AGENT",
        shell_complete=complete_agents,
        help="Who goes on in it, if it came from elsewhere.",
    )(command)


def reading(invocation: Invocation) -> closing[StateReader]:
    """Questions about state, for as long as the block lasts."""
    return closing(open_reader(invocation.state_directory()))


def told_session(invocation: Invocation, reference: str) -> Session:
    """The same, for those who want to know what was said in it: one that was imported is read now."""
    from nightherd.cli.session_told import told

    session = named_session(invocation, reference)
    if session.imported_from is None or session.runtime_session_id is None:
        return session
    return told(invocation, session)


def named_session(invocation: Invocation, reference: str) -> Session:
    """The session's row now; `SessionNotFoundError` when there is none by that name."""
    with reading(invocation) as reader:
        return find_session(reader, reference)
