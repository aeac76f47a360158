"""Who runs a state directory: one process at a time, which holds a lock and says who it is.

The lock is what counts; the record beside it is what `status` shows. A record whose process is gone is
nobody's.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nightherd.decoding import decode_json
from nightherd.errors import RefusedError
from nightherd.files.atomic import atomic_write_json
from nightherd.files.paths import directory_identity
from nightherd.files.permission import state_file_error
from nightherd.next_step import Action, NextStep
from nightherd.ports import Process
from nightherd.wiring.machine import is_alive, this_process

LOCK = "daemon.lock"
RECORD = "daemon.json"
SOCKET = "daemon.sock"
SERVING = "pip install 'nightherd[serve]'"
"""What brings the API, where a daemon has none."""
PRIVATE = 0o600
TRIES, TRY_S = 100, 0.02


class DaemonRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon says about itself."""

    v: int = 1
    pid: int
    host: str
    process_started: str
    boot_id: str
    started_at: datetime
    version: str
    config: str
    """The fleet file."""
    agents: list[str] | None = None
    """The agents it was limited to."""
    loaded_at: datetime
    """Since when the configuration it works with counts."""
    problems: list[dict[str, Any]] = []
    """What is wrong with a newer configuration, which is therefore not used."""
    failed_at: datetime | None = None
    pending: list[str] = []
    """What its files grant that waits for a person; it works without that."""
    socket: str | None = None
    """Where it serves the API; None where that is not installed."""
    ports: list[int] = []
    address: str | None = None
    """Where a browser on this machine opens the dashboard; None where it is not served."""
    is_draining: bool = False
    directory: str | None = None
    """Which directory it was written into, by device and inode: in a copy of it, the record does not count."""

    @property
    def process(self) -> Process:
        """The process it is."""
        return Process(
            host=self.host, pid=self.pid, started=self.process_started, boot_id=self.boot_id
        )


def make_record(
    *, at: datetime, version: str, config: str, agents: list[str] | None
) -> DaemonRecord:
    """The record of this process."""
    process = this_process()
    return DaemonRecord(
        pid=process.pid,
        host=process.host,
        process_started=process.started,
        boot_id=process.boot_id,
        started_at=at,
        version=version,
        config=config,
        agents=agents,
        loaded_at=at,
    )


def write_record(state_dir: Path, record: DaemonRecord) -> None:
    """Say who runs the directory."""
    record = msgspec.structs.replace(record, directory=directory_identity(state_dir))
    atomic_write_json(state_dir / RECORD, msgspec.to_builtins(record))


def remove_record(state_dir: Path) -> None:
    """Remove the record; does nothing when there is none."""
    (state_dir / RECORD).unlink(missing_ok=True)


def find_daemon(state_dir: Path) -> DaemonRecord | None:
    """Return the daemon of the directory; None when there is none, it was killed, or it runs the original of a copy."""
    try:
        data = (state_dir / RECORD).read_bytes()
        record = decode_json(data, DaemonRecord)
        is_copied = record.directory not in (None, directory_identity(state_dir))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if not is_copied and is_alive(record.process) else None


@contextmanager
def owning(state_dir: Path) -> Iterator[None]:
    """This process runs `state_dir` for the length of the block; `RefusedError` when another does."""
    path = state_dir / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    except OSError as error:
        raise state_file_error(error, path, "lock") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _refusal(state_dir, handle) from error
        # Read by those who are refused before the record is there.
        os.truncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            remove_record(state_dir)
            os.truncate(handle, 0)
    finally:
        os.close(handle)


def _refusal(state_dir: Path, handle: int) -> RefusedError:
    record, pid = find_daemon(state_dir), ""
    for _ in range(TRIES):
        # The lock is taken a moment before its owner says who it is.
        pid = str(record.pid) if record is not None else os.pread(handle, 32, 0).decode().strip()
        if pid:
            break
        time.sleep(TRY_S)
    since = f" since {record.started_at:%Y-%m-%dT%H:%M:%SZ}" if record is not None else ""
    return RefusedError(
        f"{state_dir} is run by process {pid or 'unknown'}{since} already",
        next_step=NextStep(Action.MANAGE_DAEMON),
    )
