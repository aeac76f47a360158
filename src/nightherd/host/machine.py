"""What this machine and other programs on it say: its git, its clock, its processes, and who is at the other end of a connection."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from nightherd.host.process import PROC, stat_fields

ANSWER_S = 5.0


def git_version() -> str | None:
    """What `git --version` prints; None where there is no git."""
    return _said("git", "--version")


def is_clock_synchronised() -> bool | None:
    """Whether systemd keeps the clock right; None where that is unknown."""
    return _is_yes(_said("timedatectl", "show", "--property=NTPSynchronized", "--value"))


def is_lingering(user: str) -> bool | None:
    """Whether the user's services run while the user is not logged in; None where that is unknown."""
    return _is_yes(_said("loginctl", "show-user", user, "--property=Linger", "--value"))


def _is_yes(answer: str | None) -> bool | None:
    """What systemd's tools answer; None for neither yes nor no."""
    return {"yes": True, "no": False}.get(answer or "")


def _said(*words: str) -> str | None:
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def user_name() -> str:
    """The name of the user that runs this process, by its number: no variable can say otherwise."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "unknown"


EXECUTION_MARK = "NIGHTHERD_EXECUTION"
HOOK_MARK = "NIGHTHERD_HOOK_EVENT"
"""In the environment of hooks, which are the operator's own commands."""
PARENT = 1
"""Place in /proc/<pid>/stat, counted after the name."""
MOST_ANCESTORS = 1_000


def find_agent_above(pid: int, directory: str) -> str | None:
    """Return the mark of the agent that started `pid`, of the state directory with this identity; None for a person."""
    marks = [_environment(one) for one in _line(pid)]
    if not marks:
        marks = [dict(os.environ)] if pid == os.getpid() else []
    for variables in marks:
        mark = variables.get(EXECUTION_MARK)
        if mark is None or HOOK_MARK in variables:
            continue
        execution, separator, owner = mark.partition("@")
        if not separator or owner == directory:
            return execution
    return None


def _line(pid: int) -> Iterator[int]:
    """The process and those above it."""
    for _ in range(MOST_ANCESTORS):
        fields = stat_fields(pid)
        if fields is None:
            return
        yield pid
        pid = int(fields[PARENT])
        if pid <= 1:
            return


def _environment(pid: int) -> dict[str, str]:
    """What the process was started with; empty when it is gone or another person's."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}


SOL_LOCAL, LOCAL_PEERPID = 0, 2
"""How macOS is asked."""


class Connected(Protocol):
    """What is asked of a socket."""

    @property
    def family(self) -> int: ...
    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...
    def getsockname(self) -> object: ...
    def getpeername(self) -> object: ...


def peer_pid(connection: Connected) -> int | None:
    """Return the pid of the other end; None when it is on another machine or is unknown."""
    try:
        if connection.family == socket.AF_UNIX:
            return _unix_peer(connection)
        here, there = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    if not isinstance(here, tuple) or not isinstance(there, tuple):
        return None
    return _tcp_peer(there[:2], here[:2])


def peer_user(connection: Connected) -> str | None:
    """Return the name of the user that the other end of a unix socket runs as; None when it is unknown."""
    option = getattr(socket, "SO_PEERCRED", None)
    try:
        if option is None or connection.family != socket.AF_UNIX:
            return None
        uid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))[1]
        return pwd.getpwuid(uid).pw_name
    except (OSError, KeyError):
        return None


def _unix_peer(connection: Connected) -> int | None:
    if sys.platform == "darwin":
        return int(struct.unpack("i", connection.getsockopt(SOL_LOCAL, LOCAL_PEERPID, 4))[0])
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid = int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))[0])
    return pid or None


def _tcp_peer(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The process that has the client's end, by the kernel's table of connections."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if _ports(fields) == (client[1], server[1]):
                found = _holder(f"socket:[{fields[9]}]")
                if found is not None:
                    return found
    return None


def _ports(fields: list[str]) -> tuple[int, int]:
    """The ports of both ends. Two connections of this machine never have the same pair to one server."""
    local, remote = fields[1], fields[2]
    return int(local.rpartition(":")[2], 16), int(remote.rpartition(":")[2], 16)


def _holder(link: str) -> int | None:
    for process in PROC.glob("[0-9]*"):
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue
        if any(_target(descriptor) == link for descriptor in descriptors):
            return int(process.name)
    return None


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""
