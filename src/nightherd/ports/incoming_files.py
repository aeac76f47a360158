"""Files that people send to agents: put where the agent's job sees them."""

from __future__ import annotations

from typing import Protocol


class IncomingFiles(Protocol):
    """Puts fetched files into directories that agents may change: no link there is ever followed."""

    def place(self, source: str, root: str, path: str) -> None:
        """Copy the file `source` to `path` below the directory `root`, whole or not at all; a file there is replaced.

        `RefusedError` where `root` is no directory, or a part of `path` is a link or cannot be written.
        """

    def share(self, source: str, folder: str, path: str) -> None:
        """Move the file `source` to `path` below `folder`, which is made; every user who reaches the folder can read it."""

    def unshare(self, folder: str, path: str) -> None:
        """Remove the file at `path` below `folder`, and every directory that is empty then, `folder` too."""

    def remove(self, root: str, path: str) -> None:
        """Remove the file at `path` below `root`, and its directory if that is empty then; nothing if there is none."""
