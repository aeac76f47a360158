"""Files that agents send to people: kept in the state directory before anybody is told that they were sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class FileToKeep(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent names, and where it may be."""

    path: str
    """As the agent wrote it; relative to the directory that it works in."""
    directory: str
    """The directory that it works in."""
    root: str
    """The workspace: only what is really below it is taken."""
    limit: int
    """The most bytes that it may have."""
    folder: str
    """The folder that the copy is put into, below those of all jobs."""


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that stays as it is, whatever the agent does with its file."""

    path: str
    name: str
    """As the people are shown it."""
    size: int
    digest: str
    """Of the content and the name."""


class OutgoingFiles(Protocol):
    """Where files of agents wait until they are sent."""

    def keep(self, file: FileToKeep, is_secret: Callable[[str], bool]) -> KeptFile:
        """Copy a file; may take a moment. The same file twice is one copy.

        `RefusedError` for what is outside of the workspace, no regular file, empty, too large, or a text that
        `is_secret` says holds a secret.
        """
