"""Place: where the commands of a run are started. This machine, or a container on it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from nightherd.runtimes.keeper.census import Census
from nightherd.runtimes.keeper.ending import end_processes
from nightherd.runtimes.keeper.launch import launch

PROGRAMS = str(Path(__file__).parents[1] / "tools")
"""Where programs of ours that need nothing but an interpreter are found on this machine."""


class FilesThere(Protocol):
    """Which files commands see, beside those of this machine."""

    @property
    def is_container(self) -> bool:
        """Whether commands see other files than the worker: then no tool may touch a file from here."""

    def host_path(self, path: str) -> str | None:
        """The path on this machine of what has the absolute `path` there; None for what is only there.

        Links below a mounted directory are not followed, those on the way to it are.
        """


class Place(FilesThere, Protocol):
    """Where keepers, and the commands under them, are started and ended."""

    @property
    def python(self) -> str:
        """The interpreter that runs programs of ours there; inside a container it may be as old as Python 3.9."""

    @property
    def programs(self) -> str:
        """The directory there that has programs of ours."""

    @property
    def scratch(self) -> str | None:
        """A directory for files of a run that is the same on both sides; None for the usual one."""

    def launch(self, marks: Mapping[str, str], descriptors: Sequence[int]) -> int:
        """The pid of a keeper that has `descriptors` as its 0, 1, 2, and so on; they stay ours to close.

        `OSError` when it cannot be started.
        """

    def reap(self, pid: int) -> None:
        """Take note of the end of a keeper, which has let go of its descriptors."""

    def end(self, marks: frozenset[bytes], roots: frozenset[int]) -> tuple[int, int]:
        """Kill these processes, their descendants and all that carry the marks; how many there were, and are left."""

    def listen(self) -> socket.socket:
        """A socket that accepts connections on the loopback interface there; `OSError` when there can be none."""

    def give(self, path: Path) -> None:
        """Let processes there read and remove `path`, a file or directory of the run, and all below it."""


class HostPlace(msgspec.Struct, frozen=True, kw_only=True):
    """This machine, as the user who runs the worker."""

    is_container: bool = False
    python: str = sys.executable
    programs: str = PROGRAMS
    scratch: str | None = None

    def launch(self, marks: Mapping[str, str], descriptors: Sequence[int]) -> int:
        """Start a keeper."""
        return launch(marks, descriptors)

    def reap(self, pid: int) -> None:
        """Wait for its end."""
        os.waitpid(pid, 0)

    def end(self, marks: frozenset[bytes], roots: frozenset[int]) -> tuple[int, int]:
        """Kill them, without grace."""
        killed, left = end_processes(Census(marks=marks, roots=roots), 0.0)
        return killed, len(left)

    def listen(self) -> socket.socket:
        """A socket of this machine's loopback interface."""
        return socket.create_server(("127.0.0.1", 0))

    def give(self, path: Path) -> None:
        """Everything here is the user's own."""

    def host_path(self, path: str) -> str | None:
        """The same path."""
        return path


HOST = HostPlace()
