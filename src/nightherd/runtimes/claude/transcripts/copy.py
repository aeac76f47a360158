"""The raw copy of one transcript: it only grows, is private, and is packed when its session is over."""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nightherd.errors import StateFileError
from nightherd.files.atomic import atomic_write_file, sync_directory, temp_path_for

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
GROWING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
BLOCK = 1024 * 1024


class TranscriptCopy:
    """The copy of one session's transcript, `<uuid>.jsonl`, or `<uuid>.jsonl.gz` while it is packed."""

    def __init__(self, root: Path, uuid: str) -> None:
        self.path = root / f"{uuid}.jsonl"
        self._packed = root / f"{uuid}.jsonl.gz"
        self._left_at = -1
        """Its size when it was last found to be the beginning of its source."""

    def size(self) -> int:
        """Bytes, not packed; 0 when there is none."""
        self.unpack()
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> bytes:
        """All of it."""
        self.unpack()
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""

    def peek(self) -> bytes:
        """All of it, left in whatever form it is; nothing of one that cannot be read."""
        with suppress(FileNotFoundError):
            return self.path.read_bytes()
        with suppress(OSError, EOFError, zlib.error):
            return gzip.decompress(self._packed.read_bytes())
        return b""

    def grow(self, source: Path) -> bool:
        """Take over what `source` has and the copy lacks; whether there was anything.

        A source that is another transcript than before does not overwrite the copy, which is put aside. A
        source that is gone, or shorter than the copy, changes nothing.
        """
        try:
            size = source.stat().st_size
        except OSError:
            return False
        if size == self._left_at:
            return False
        self.unpack()
        with source.open("rb") as original, self._held() as copy:
            kept = os.fstat(copy.fileno()).st_size
            if kept > size:
                return False
            if kept != self._left_at and not _begins_with(original, copy, kept):
                self._put_aside()
            else:
                original.seek(kept)
                while block := original.read(BLOCK):
                    copy.write(block)
                copy.flush()
                self._left_at = os.fstat(copy.fileno()).st_size
                return self._left_at > kept
        return self.grow(source)

    def add(self, lines: bytes) -> None:
        """Append whole lines that come from elsewhere."""
        if not lines:
            return
        self.unpack()
        with self._held() as copy:
            copy.write(lines)
            copy.flush()
        self._left_at = -1

    def pack(self) -> None:
        """Compress it; it is there, in one form or the other, at every moment."""
        if not self.path.exists():
            return
        temporary = temp_path_for(self._packed)
        try:
            with (
                self.path.open("rb") as plain,
                os.fdopen(_new(temporary), "wb") as raw,
                gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as out,
            ):
                shutil.copyfileobj(plain, out, BLOCK)
                out.close()
                raw.flush()
                os.fsync(raw.fileno())
            temporary.replace(self._packed)
            sync_directory(self._packed.parent)
        finally:
            temporary.unlink(missing_ok=True)
        self.path.unlink()
        self._left_at = -1

    def unpack(self) -> None:
        """Undo `pack`. Of two forms that a kill left, the plain one counts: it is gone last.

        `StateFileError` for a packed one that cannot be read; it is put aside, and told of once.
        """
        if self.path.exists() or not self._packed.exists():
            return
        try:
            plain = gzip.decompress(self._packed.read_bytes())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            aside = self._packed.with_name(f"{self._packed.name}.damaged")
            self._packed.replace(aside)
            message = f"{aside} is damaged and was put aside: {error}"
            raise StateFileError(message, path=str(aside), operation="read") from error
        atomic_write_file(self.path, plain)
        self._packed.unlink()

    def cut(self, size: int) -> None:
        """Drop what is beyond `size`: half a line that will never be whole."""
        with self._held() as copy:
            copy.truncate(size)
        self._left_at = -1

    def sync(self) -> None:
        """It survives a power cut from here on."""
        with suppress(FileNotFoundError), self.path.open("rb") as copy:
            os.fsync(copy.fileno())

    @contextmanager
    def _held(self) -> Iterator[BinaryIO]:
        """The copy, open for appending, with no other process at it; `BlockingIOError` when there is one.

        Not waited for: a process that was stopped at it may hold it for ever.
        """
        make_private(self.path.parent)
        with os.fdopen(os.open(self.path, GROWING, PRIVATE_FILE), "r+b") as copy:
            fcntl.flock(copy, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield copy

    def _put_aside(self) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.stem}.before-{number}.jsonl")).exists():
            number += 1
        self.path.rename(aside)


def make_private(directory: Path) -> None:
    """A directory that only its owner sees into, and so are those above it that have to be made."""
    if directory.is_dir():
        return
    make_private(directory.parent)
    directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)


def _begins_with(original: BinaryIO, copy: BinaryIO, size: int) -> bool:
    copy.seek(0)
    left = size
    while left:
        block = min(left, BLOCK)
        if original.read(block) != copy.read(block):
            return False
        left -= block
    return True


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
