"""One process writes the mirror at a time; the others find it written."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from nightherd.files.permission import state_file_error

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
        """Take the lock if nobody has it; never waits."""
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
