"""The process at the other end of a connection on this machine, where the system tells."""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path
from typing import Protocol

from nightherd.host.process import PROC

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
    """Return the pid of the other end; None when it is on another machine or cannot be told."""
    try:
        if connection.family == socket.AF_UNIX:
            return _unix_peer(connection)
        here, there = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    if not isinstance(here, tuple) or not isinstance(there, tuple):
        return None
    return _tcp_peer(there[:2], here[:2])


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
        if any(_target(one) == link for one in descriptors):
            return int(process.name)
    return None


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""
