"""The unix socket: a file that only its owner can use, replaced when the process that made it is gone."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nightherd.errors import RefusedError, StateFileError
from nightherd.next_step import Action, NextStep

OPERATIONS = "/v1/operations"
"""Where commands send their requests; served on the socket only."""
CODES = "/v1/login/codes"
"""Where `nightherd open` gets a login code; served on the socket only."""
BACKLOG = 512
LONGEST = 100
"""Bytes of a path that fit into a socket's address on every system, with some to spare."""


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """A name for `path` that a socket can be bound or connected to, however long the path is."""
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def connect(path: Path, timeout_s: float | None = None) -> socket.socket:
    """Connect to the process that listens at `path`; `OSError` when none does."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with address_of(path) as address:
            client.connect(address)
    except BaseException:
        client.close()
        raise
    return client


def listen(path: Path) -> socket.socket:
    """A socket that listens at `path`, mode 0600. `RefusedError` when another process does.

    It gets its name only once it listens and only its owner can use it.
    """
    _refuse_taken(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        draft.unlink(missing_ok=True)
        with address_of(draft) as address:
            server.bind(address)
        draft.chmod(0o600)
        server.listen(BACKLOG)
        server.setblocking(False)
        draft.rename(path)
    except OSError as error:
        server.close()
        with suppress(OSError):
            draft.unlink()
        raise StateFileError(
            f"cannot listen at {path}: {error.strerror or error}",
            path=str(path),
            operation="write",
        ) from error
    return server


def inode_of(path: Path) -> int:
    """Which file is at `path` now."""
    return path.stat().st_ino


def remove(path: Path, inode: int) -> None:
    """Take the socket away, if it still is the one that was made."""
    with suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()


def _refuse_taken(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return
    if not is_socket:
        raise RefusedError(f"{path} exists and is not a socket")
    try:
        connect(path, 1.0).close()
    except OSError:
        return  # left behind by a process that is gone
    raise RefusedError(
        f"another process already listens at {path}", next_step=NextStep(Action.SHOW_STATUS)
    )
