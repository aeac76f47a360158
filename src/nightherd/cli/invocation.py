"""Invocation: what one call of the command was given, and the places that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from nightherd.cli.screen.render import Screen
from nightherd.config.discovery import STATE_DIRECTORY, find_fleet_file
from nightherd.errors import ConfigNotFoundError, NotFoundError


class Invocation(NamedTuple):
    """The global options, the environment and the screen of one call."""

    screen: Screen
    environ: Mapping[str, str]
    cwd: Path
    config: Path | None = None
    state: Path | None = None

    def fleet_file(self) -> Path:
        """The fleet file: the one named, else the nearest upward. `ConfigNotFoundError` without one."""
        if self.config is None:
            found = find_fleet_file(self.cwd)
            where = f"in {self.cwd} or above it"
        else:
            named = self.cwd / self.config
            if named.is_dir():
                found = find_fleet_file(named.resolve())
            else:
                # `..` is taken out, so that places read well; a file that is a link stays one.
                found = named.parent.resolve() / named.name
            where = f"at {self.config}"
        if found is None or not (found.exists() or found.is_symlink()):
            raise ConfigNotFoundError(f"there is no fleet file {where}", hint="nightherd init")
        return found

    @property
    def named_state(self) -> Path | None:
        """The state directory that was named, if one was."""
        return None if self.state is None else self.cwd / self.state

    def state_directory(self) -> Path:
        """The state directory, to look at: the one named, else the one beside the fleet file.

        One that was named has to be there, or a slip of the hand would read as a fleet that never worked.
        """
        found = self.new_state_directory()
        if self.state is not None and not found.is_dir():
            what = "is not a directory" if found.exists() else "does not exist"
            raise NotFoundError(
                f"the state directory {found} {what}",
                hint="check --state-dir and NIGHTHERD_STATE_DIR; nightherd run and nightherd start make it",
            )
        return found

    def new_state_directory(self) -> Path:
        """The same for those who make it where it is not there yet."""
        if self.named_state is not None:
            return self.named_state
        return self.fleet_file().parent / STATE_DIRECTORY


def invocation_of(ctx: click.Context) -> Invocation:
    """What this call was given, for a command that takes the context."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None  # noqa: S101 (the group above puts it there)
    return invocation
