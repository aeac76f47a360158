"""What the session commands share: how a session is named, and where it is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from nightherd.cli.complete import complete_sessions
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import Command
from nightherd.model.session import Session
from nightherd.ports import StateReader
from nightherd.views.sessions import find_session
from nightherd.wiring import open_reader


def session_argument(command: Command) -> Command:
    """A session: our id or its runtime's, a unique prefix of one, or `@last`."""
    return click.argument("session", metavar="SESSION", shell_complete=complete_sessions)(command)


@contextmanager
def reading(invocation: Invocation) -> Iterator[StateReader]:
    """Questions about state, for as long as the block lasts."""
    reader = open_reader(invocation.state_directory())
    try:
        yield reader
    finally:
        reader.close()


def named_session(invocation: Invocation, reference: str) -> Session:
    """The session's row now; `SessionNotFoundError` when there is none by that name."""
    with reading(invocation) as reader:
        return find_session(reader, reference)
