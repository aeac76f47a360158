"""Conversations in a terminal: the connection, and the bot that it belongs to."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nightherd.errors import RefusedError
from nightherd.model.chat.settings import BotSettings
from nightherd.model.chat.terminal import terminal_place
from nightherd.model.ids import SessionId
from nightherd.triggers.chat.terminal import TerminalConnection, TerminalView
from nightherd.wiring.chat import DIRECTORY, bots_on
from nightherd.wiring.running import rescuer

__all__ = (
    "HISTORY",
    "OpenTerminal",
    "TerminalConnection",
    "TerminalView",
    "holding_terminal",
    "open_terminal",
    "terminals_directory",
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nightherd.engine.chat.bots import Bots
    from nightherd.engine.contexts import FleetContext
    from nightherd.model.agents.agent import Fleet

TERMINALS = "terminals"
"""Below the directory of chat: a lock for each conversation that is open, and the history of lines."""
HISTORY = "history"


def terminals_directory(state_dir: Path) -> Path:
    """Return the directory of terminals, made if need be; only its owner can read it."""
    directory = state_dir / DIRECTORY / TERMINALS
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


@contextmanager
def holding_terminal(state_dir: Path, channel: str) -> Iterator[None]:
    """Be the only terminal of the conversation for the length of the block; `RefusedError` when there is another."""
    path = terminals_directory(state_dir) / f"{channel}.lock"
    handle = _locked(path)
    try:
        os.truncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _locked(path: Path) -> int:
    """The descriptor of the locked file, which is the one at `path`."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return handle
        except OSError as error:
            pid = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise RefusedError(
                f"the conversation is open in another terminal (process {pid}); leave it there first"
            ) from error
        os.close(handle)  # the one who had it has removed it meanwhile


class OpenTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to open."""

    settings: BotSettings
    channel: str
    user: str
    session_id: SessionId | None = None
    """The session that it continues; None for its own."""


def open_terminal(
    wanted: OpenTerminal,
    state_dir: Path,
    view: TerminalView,
    fleet: Fleet,
    context: FleetContext,
    report: Callable[[str], None],
) -> tuple[TerminalConnection, Bots]:
    """Return the connection of a terminal and what runs its bot."""
    settings = wanted.settings
    connection = TerminalConnection(
        settings.bot,
        terminal_place(wanted.channel),
        view,
        context.clock.now,
        user_id=wanted.user,
        user_name=wanted.user,
        bot_name=settings.agent,
    )

    # The other bots of the fleet are the daemon's.
    agent = replace(fleet.agents[settings.agent], bots=(settings,))
    bots = bots_on(
        connection,
        state_dir,
        replace(fleet, agents={agent.name: agent}),
        context,
        report,
        rescue=rescuer(context, fleet),
        session_id=wanted.session_id,
    )
    return connection, bots
