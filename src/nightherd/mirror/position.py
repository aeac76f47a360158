"""`mirror.json`: how far the mirror has come, and what is in no row: what each transcript already has, and the declared agents."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.decoding import decode_json
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import keep_aside, state_file_error
from nightherd.files.regular import read_regular
from nightherd.mirror.behind import VERSION
from nightherd.model.jobs.lost import Lost

FIRST_VERSION = 1
"""The oldest version that can be upgraded."""


class JobProgress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far the files of a job are that has begun and whose end they do not show yet."""

    seq: int = 0
    """The event up to which its transcript is written."""
    runtime_session_id: str | None = None
    is_introduced: bool = False
    """The runtime has reported its session id, or that it has none."""
    model: str | None = None
    lost: Lost | None = None
    """What its file says about its missing worker."""


class SessionProgress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What was written of a session that can go on."""

    transcripts: dict[str, int] = {}
    """Transcripts by path below `projects/`, and how many bytes of each are ours."""


class AgentProgress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An agent that has worked or has schedules."""

    latest: str | None = None
    """Its newest session: what its file shows while it has no persistent one."""


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything the mirror remembers. Rows are not among it: the reader has them."""

    v: int
    change: int = 0
    started_at: str | None = None
    declared: list[str] = []
    blocked: dict[str, str] = {}
    """Why none of an agent's jobs may run, by the agent's name."""
    agents: dict[str, AgentProgress] = {}
    jobs: dict[str, JobProgress] = {}
    sessions: dict[str, SessionProgress] = {}
    state_stamp: list[int] = []
    """What `state.yaml` looked like to the file system when it was last written here."""

    def declare(self, agents: Mapping[str, str | None]) -> set[str]:
        """Make these the declared agents, each with the reason why it may not run; return those that changed."""
        before, after = set(self.declared), set(agents)
        blocked = {name: reason for name, reason in agents.items() if reason is not None}
        other = {name for name in before | after if self.blocked.get(name) != blocked.get(name)}
        self.declared, self.blocked = sorted(after), blocked
        return (before ^ after) | other


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
        memory = decode_json(data, Memory)
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
