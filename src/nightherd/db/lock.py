"""`write.lock`: one writer at a time over all processes, in the order they came.

The kernel releases it when its holder dies. A holder that is stopped for the whole patience is killed, so
that one frozen process cannot keep every other from working; `notice` names the process that was killed.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from nightherd.db.failure import unusable
from nightherd.db.holder import Holder, has_lock, is_stopped, kill, read_holder, this_process

PATIENCE_S = 15.0
"""Half a lease: the others are rescued before their own leases run out."""

LOOKS = 10
"""How often a holder is looked at before it is given up: stopped every time, or left alone."""

Notice = Callable[[str], None]


class WriteLock:
    """An exclusive lock on `path`, for one thread of this process. A context manager."""

    def __init__(self, path: Path, *, notice: Notice, patience_s: float = PATIENCE_S) -> None:
        self.path = path
        self._notice = notice
        self._patience_s = patience_s
        self._descriptor: int | None = None
        self._holder: Holder | None = None

    def __enter__(self) -> None:
        try:
            descriptor = self._acquire()
            self._holder = (
                this_process(1)
                if self._holder is None
                else replace(self._holder, hold=self._holder.hold + 1)
            )
            os.pwrite(descriptor, self._holder.record(), 0)
        except OSError as error:
            self.close()
            raise unusable(error, self.path, "lock") from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up the file; a lock held through this object is lost."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _acquire(self) -> int:
        while True:
            descriptor = self._descriptor
            if descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                descriptor = self._descriptor = os.open(self.path, flags, 0o600)
            self._lock(descriptor)
            if _is_same_file(descriptor, self.path):
                return descriptor
            # The file was deleted: a lock on a file that no other process can open excludes nothing.
            self.close()

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = threading.Event()
            watcher = threading.Thread(
                target=self._watch, args=(descriptor, taken), name="nightherd-lock", daemon=True
            )
            watcher.start()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            finally:
                taken.set()
                watcher.join()

    def _watch(self, descriptor: int, taken: threading.Event) -> None:
        """While this process waits: look at the holder, and kill it once it was stopped all the time."""
        looked_at: Holder | None = None
        looks = 0
        while not taken.wait(self._patience_s / LOOKS):
            holder = read_holder(descriptor)
            if holder is None or not is_stopped(holder) or not has_lock(holder, descriptor):
                looks = 0
                continue
            looks = looks + 1 if holder == looked_at else 1
            looked_at = holder
            if looks > LOOKS and kill(holder):
                self._notice(
                    f"process {holder.pid} was stopped for {self._patience_s:g} s while it held"
                    f" {self.path}; it was killed so that others can continue"
                )
                return


def is_free(path: Path) -> bool:
    """Return whether no process holds the lock at this moment; creates nothing and does not wait."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))
