"""The log files of a state directory: `logs/<agent>.log`, and `logs/nightherd.log` for what no agent did; rotated by size."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path

import msgspec

from nightherd.decoding import json_decoder
from nightherd.files.atomic import write_all
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.secrets import Secrets
from nightherd.model.text import shorten

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
        """Rotate the file, unless another process just did."""
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


OWN = "nightherd"
SUFFIX = ".log"
UNREADABLE = "unreadable"
MOST_OPEN = 64
LONGEST_MESSAGE = 4_000
BLOCK = 1024 * 1024
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

_encode = msgspec.json.Encoder().encode
_decode = json_decoder(LogLine).decode


class LogFiles:
    """Writes and reads the logs in one directory. Writing never fails: a log is not worth a job.

    Any number of processes may write at once, and any thread of this one.
    """

    def __init__(
        self, directory: Path, secrets: Secrets, *, limit: int = LIMIT, kept: int = KEPT
    ) -> None:
        self._directory = directory
        self._secrets = secrets
        self._limit = limit
        self._kept = kept
        self._open: dict[str, RotatingFile] = {}
        self._lock = threading.Lock()

    def write(self, line: LogLine) -> None:
        """Add a line to its agent's log, secrets masked."""
        masked = msgspec.structs.replace(
            line,
            message=_short(self._secrets.mask(line.message)),
            data=self._secrets.mask(line.data),
        )
        try:
            data = _encode(masked) + b"\n"
        except (TypeError, ValueError):
            return
        with self._lock:
            try:
                self._file(line.agent or OWN).append(data)
            except OSError:
                # A full disk, say. The writer of state reports it; the journal has what happened.
                self._let_go()

    def know(self, secrets: Secrets) -> None:
        """Mask these as well from now on; what was masked before still is."""
        self._secrets = self._secrets.joined(secrets)

    def close(self) -> None:
        """Let go of every file."""
        with self._lock:
            self._let_go()

    def names(self) -> list[str]:
        """Every log there is, by its agent's name."""
        found = {path.name for path in self._directory.glob(f"*{SUFFIX}")}
        return sorted(name.removesuffix(SUFFIX) for name in found)

    def read(self, names: list[str], *, is_followed: bool = False) -> Iterator[LogLine]:
        """The lines of these logs, oldest first; without the newest files where these are followed."""
        lines = (self._lines(name, is_followed=is_followed) for name in names)
        return merge(*lines, key=lambda line: line.at)

    def tail(self, name: str) -> LogTail:
        """The newest file of one log from its beginning, and whatever follows."""
        return LogTail(self._path(name))

    def _lines(self, name: str, *, is_followed: bool) -> Iterator[LogLine]:
        newest, at = self._path(name), BEGINNING
        for path in files_of(newest):
            if is_followed and path == newest:
                continue
            try:
                with path.open("rb") as file:
                    for text in file:
                        if text.endswith(b"\n"):  # else another process is writing it
                            line = parse(text, at)
                            at = line.at
                            yield line
            except FileNotFoundError:
                continue  # rotated meanwhile

    def _file(self, name: str) -> RotatingFile:
        file = self._open.get(name)
        if file is None:
            if len(self._open) >= MOST_OPEN:
                self._let_go()
            file = RotatingFile(self._path(name), limit=self._limit, kept=self._kept)
            self._open[name] = file
        return file

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{SUFFIX}"

    def _let_go(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


class LogTail:
    """A place in a log that moves on with each `poll`, also when the file is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._rest = b""
        self._next()

    def poll(self) -> list[LogLine]:
        """The lines that have come since."""
        lines = self._read()
        if self._was_replaced():
            lines += self._read()  # whatever came before it was set aside
            self._next()
            lines += self._read()
        return lines

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _read(self) -> list[LogLine]:
        found: list[LogLine] = []
        while self._handle >= 0 and (block := os.read(self._handle, BLOCK)):
            *whole, self._rest = (self._rest + block).split(b"\n")
            found += [parse(text) for text in whole if text]
        return found

    def _was_replaced(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return self._handle < 0 or not os.path.samestat(os.fstat(self._handle), there)

    def _next(self) -> None:
        self.close()
        self._rest = b""
        try:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._handle = -1


def parse(text: bytes, before: datetime = BEGINNING) -> LogLine:
    """A line of a file; one that cannot be read is shown as it is, after the one that came before it."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = text.decode(errors="replace").rstrip("\n")
        return LogLine(
            at=before,
            level=LogLevel.WARNING,
            event=UNREADABLE,
            message=said[:LONGEST_MESSAGE],
        )


def _short(message: str | None) -> str | None:
    return None if message is None else shorten(message, LONGEST_MESSAGE)
