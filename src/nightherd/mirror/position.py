"""`mirror.json`: how far the mirror has come, and what it has to remember to continue from there."""

from __future__ import annotations

import fcntl
import os
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.errors import StateFileError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import keep_aside, state_file_error
from nightherd.files.regular import read_regular
from nightherd.mirror.behind import VERSION
from nightherd.mirror.images import SESSIONS, SessionImage, read_image
from nightherd.mirror.memory import Memory, Pending, current_session
from nightherd.ports import ChangeFeed

FIRST_VERSION = 1
"""The oldest version that can be upgraded."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The memory to continue from, and what there is to say about it."""

    memory: Memory
    data: bytes = b""
    """What the file holds."""
    notice: str | None = None


def load_memory(path: Path, now: datetime) -> Loaded:
    """The memory in `path`. Without one, or with one that cannot be used, everything is mirrored again.

    A file that cannot be used is kept aside.
    """
    try:
        data = read_regular(path)
        memory = msgspec.json.decode(data, type=Memory)
        if FIRST_VERSION <= memory.v <= VERSION:
            return Loaded(memory=memory, data=data)
        reason = f"version {memory.v}, this nightherd writes {VERSION}"
    except FileNotFoundError:
        return Loaded(memory=Memory(v=VERSION))
    except OSError as error:
        raise state_file_error(error, path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error)
    aside = keep_aside(path, now)
    notice = (
        f"'{path}' could not be used ({reason}); it is kept as {aside.name}, the mirror is rebuilt"
    )
    return Loaded(memory=Memory(v=VERSION), notice=notice)


def save_memory(path: Path, memory: Memory, saved: bytes) -> bytes:
    """Write `memory` unless that would be `saved` again; what the file holds then. Not synced."""
    data = msgspec.json.encode(memory) + b"\n"
    if data != saved:
        atomic_write_file(path, data, durable=False)
    return data


PRIVATE = 0o600


class MirrorLock:
    """An exclusive lock that the system takes back when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process holds it."""
        return self._handle is not None

    def acquire(self) -> bool:
        """Take the lock if it is free; never waits."""
        if self._handle is not None:
            return True
        try:
            handle = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE
            )
        except OSError as error:
            raise state_file_error(error, self._path, "lock") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Give it back; harmless when it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def upgrade(memory: Memory, feed: ChangeFeed, pending: Pending) -> None:
    """Read the sessions again, correct which one each agent continues, and note the files to be written for it."""
    for entry in feed.read():
        if entry.change > memory.change:
            break
        for table, row in entry.rows:
            if table != SESSIONS:
                continue
            try:
                image = read_image(table, row)
            except StateFileError:
                continue  # reported when its change was mirrored, and left out
            if isinstance(image, SessionImage) and image.id in memory.sessions:
                memory.sessions[image.id].image = image
    for name, agent in memory.agents.items():
        agent.persistent = current_session(memory, name)
        if agent.shown_session is not None:
            pending.agent_sessions.add(name)
    memory.v = VERSION
    pending.is_state_due = True
