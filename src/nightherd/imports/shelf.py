"""The shelf: raw copies of transcripts in `transcripts/`, private, each there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from nightherd.errors import RefusedError
from nightherd.files.atomic import rename_with_retry, sync_directory, temp_path_for, write_all
from nightherd.files.paths import safe_child
from nightherd.files.permission import atomic_write_error

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


SYNCERS = 4
"""Copies that are put on disk at the same time; file systems do several for little more than one."""

REMEMBERED = 1_000


class Kept(msgspec.Struct, frozen=True):
    """A copy that is written whole, waits for being put on disk, and gets its name then."""

    handle: int
    temporary: Path
    target: Path

    def put(self) -> None:
        """On disk first, then under its name."""
        try:
            os.fsync(self.handle)
            rename_with_retry(self.temporary, self.target)
        except OSError as error:
            raise atomic_write_error(error, self.target) from error

    def drop(self) -> None:
        """Give everything back; what did not get its name is gone."""
        os.close(self.handle)
        self.temporary.unlink(missing_ok=True)


class TranscriptCopies:
    """The raw copies below one directory, which is made when the first is kept. `close` it when done."""

    def __init__(self, root: Path, *, is_read_only: bool = False) -> None:
        self._root = root
        self._is_read_only = is_read_only
        self._paths: dict[str, Path] = {}
        self._kept: list[Kept] = []
        self._unsynced: set[Path] = set()

    def is_current(self, name: str, *, size: int, modified_ns: int) -> bool:
        """Whether the copy was marked as complete for a source of this size and time."""
        try:
            found = self._path(name).stat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (size, modified_ns)

    def has(self, name: str) -> bool:
        """Whether there is a copy by that name, as it is or packed (`.gz`)."""
        path = self._path(name)
        return path.exists() or path.with_name(f"{path.name}.gz").exists()

    @contextmanager
    def draft(self, name: str) -> Iterator[Draft]:
        """A new copy to be written from the beginning; dropped unless `keep` is called on it."""
        target = self._path(name)
        draft = Draft(target, None if self._is_read_only else self._begin(target))
        try:
            yield draft
            if draft.is_kept:
                self._kept.append(draft.hand_over())
        finally:
            draft.close()

    def sync(self) -> None:
        """Every copy kept so far has its name, and survives a power cut, from here on."""
        kept, self._kept = self._kept, []
        try:
            if kept:
                with ThreadPoolExecutor(SYNCERS) as pool:
                    # Not by `map`: the first that fails would call off those that have not begun.
                    puttings = [pool.submit(one.put) for one in kept]
                for putting in puttings:
                    putting.result()
        finally:
            for one in kept:
                one.drop()
        self._unsynced.update(one.target.parent for one in kept)
        while self._unsynced:
            directory = self._unsynced.pop()
            try:
                sync_directory(directory)
            except OSError as error:
                raise atomic_write_error(error, directory) from error

    def mark(self, name: str, *, modified_ns: int) -> None:
        """The copy, and what was recorded from it, is as the source was at this time."""
        path = self._path(name)
        try:
            os.utime(path, ns=(modified_ns, modified_ns))
        except OSError as error:
            raise atomic_write_error(error, path) from error

    def close(self) -> None:
        """Drop what was kept and never synced."""
        while self._kept:
            self._kept.pop().drop()

    def _begin(self, target: Path) -> Path:
        try:
            for directory in (self._root, *self._below_root(target)):
                if not directory.is_dir():
                    directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
                    self._unsynced.add(directory.parent)
        except OSError as error:
            raise atomic_write_error(error, target) from error
        return temp_path_for(target)

    def _below_root(self, target: Path) -> list[Path]:
        return [above for above in reversed(target.parents) if self._root in above.parents]

    def _path(self, name: str) -> Path:
        path = self._paths.get(name)
        if path is None:
            if len(self._paths) >= REMEMBERED:
                self._paths.clear()
            path = self._paths[name] = safe_child(self._root, name)
        return path


class Draft:
    """A copy being written, compared on the way with the one that is there."""

    def __init__(self, target: Path, temporary: Path | None) -> None:
        self._target = target
        self._temporary = temporary
        self._handle = -1
        self._old = -1
        self._size = 0
        self._old_left = 0
        self._is_like_old = True
        self.is_kept = False
        try:
            if temporary is not None:
                self._handle = os.open(temporary, NEW, PRIVATE_FILE)
            with suppress(FileNotFoundError):
                self._old = os.open(target, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                self._old_left = os.fstat(self._old).st_size
        except OSError as error:
            self.close()
            raise atomic_write_error(error, target) from error

    @property
    def extends_old(self) -> bool:
        """Whether nothing of the copy that is there would be lost: it is the beginning of this one."""
        return self._is_like_old and self._old_left == 0

    @property
    def is_same(self) -> bool:
        """Whether the copy that is there has exactly these bytes."""
        return self._old >= 0 and self.extends_old and os.fstat(self._old).st_size == self._size

    def write(self, block: bytes) -> None:
        """The next bytes."""
        try:
            if self._old_left and self._is_like_old:
                before = os.read(self._old, min(len(block), self._old_left))
                self._old_left -= len(before)
                self._is_like_old = bool(before) and block.startswith(before)
            self._size += len(block)
            if self._handle >= 0:
                write_all(self._handle, block)
        except OSError as error:
            raise atomic_write_error(error, self._target) from error

    def keep(self) -> None:
        """It gets its name when the shelf is synced. Nothing happens in a dry run, or when it is there."""
        self.is_kept = self._temporary is not None and not self.is_same

    def hand_over(self) -> Kept:
        """What is needed to finish it; from here on it is the taker's."""
        if self._temporary is None:
            raise RefusedError("a dry run keeps nothing")
        kept = Kept(self._handle, self._temporary, self._target)
        self._handle, self._temporary = -1, None
        return kept

    def close(self) -> None:
        """Give everything back; a copy that was not handed over is gone."""
        for handle in (self._handle, self._old):
            if handle >= 0:
                os.close(handle)
        self._handle = self._old = -1
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
