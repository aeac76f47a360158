"""A file that is appended to by any number of processes and set aside when it is large enough.

`a.log` becomes `a.log.1`, that `a.log.2`, and so on; the oldest goes. Whoever writes next sees that the
file under the name is another one, and goes on there.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from nightherd.files.atomic import write_all

LIMIT = 10 * 1024 * 1024
KEPT = 5
PRIVATE = 0o600
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class RotatingFile:
    """One log, open for appending. Lines are written whole, each at once."""

    def __init__(self, path: Path, *, limit: int = LIMIT, kept: int = KEPT) -> None:
        self._path = path
        self._limit = limit
        self._kept = kept
        self._handle = -1
        self._name = str(path)
        self._identity = (0, 0)
        """Which file the handle is of: its device and number."""
        self._size = 0
        """Its size when it was last looked at."""

    def append(self, line: bytes) -> None:
        """Add a line; `OSError` when the disk does not take it."""
        handle = self._current()
        if self._size + len(line) > self._limit:
            handle = self._rotate(len(line))
        write_all(handle, line)

    def close(self) -> None:
        """Let go of the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _current(self) -> int:
        """A handle of the file that has the name now."""
        if self._handle >= 0:
            try:
                there = os.stat(self._name)  # noqa: PTH116 - per line; a Path costs more than the call
                if (there.st_dev, there.st_ino) == self._identity:
                    self._size = there.st_size
                    return self._handle
            except FileNotFoundError:
                pass
            self.close()
        self._handle = os.open(self._name, FLAGS, PRIVATE)
        opened = os.fstat(self._handle)
        self._identity, self._size = (opened.st_dev, opened.st_ino), opened.st_size
        return self._handle

    def _rotate(self, needed: int) -> int:
        """Set the file aside, unless somebody else just did."""
        while True:
            handle = self._current()
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                is_ours = self._has_name(handle)
                if is_ours and os.fstat(handle).st_size + needed > self._limit:
                    self._shift()
                elif is_ours:
                    return handle
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)
            if is_ours:
                return self._current()

    def _has_name(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False

    def _shift(self) -> None:
        older = aside(self._path, self._kept)
        for number in range(self._kept - 1, 0, -1):
            newer = aside(self._path, number)
            if newer.exists():
                newer.replace(older)
            older = newer
        self._path.replace(older)


def aside(path: Path, number: int) -> Path:
    """Where the file stands that was set aside `number` rotations ago."""
    return path.with_name(f"{path.name}.{number}")


def files_of(path: Path) -> Iterator[Path]:
    """Everything there is of one log, oldest first."""
    numbers = []
    for found in path.parent.glob(f"{path.name}.*"):
        suffix = found.name[len(path.name) + 1 :]
        if suffix.isdecimal():
            numbers.append(int(suffix))
    for number in sorted(numbers, reverse=True):
        yield aside(path, number)
    if path.exists():
        yield path
