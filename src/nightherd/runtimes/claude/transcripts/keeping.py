"""The raw copy of one transcript: it only grows, is private, and is packed when its session is over."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nightherd.errors import StateFileError
from nightherd.files.atomic import atomic_write_file, sync_directory, temp_path_for
from nightherd.files.paths import safe_name
from nightherd.runtimes.claude.transcripts.claude_files import (
    PRIVATE_FILE,
    ClaudeFiles,
    OwnFiles,
    copy_to,
    make_private,
)
from nightherd.runtimes.claude.transcripts.places import expected_path, transcript_path

GROWING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
BLOCK = 1024 * 1024


class TranscriptCopy:
    """The copy of one session's transcript, `<uuid>.jsonl`, or `<uuid>.jsonl.gz` while it is packed."""

    def __init__(self, root: Path, uuid: str, files: ClaudeFiles | None = None) -> None:
        """`files` reads what the copy is of."""
        self._files = files if files is not None else OwnFiles()
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

    def grow(self, source: Path, *, is_own: bool = True) -> bool:
        """Take over what `source` has and the copy lacks; whether there was anything.

        A source that is another transcript than before does not overwrite the copy, which is put aside; one that is
        not what the copy is of (`is_own`) changes nothing then. Nor does one that is gone, or shorter than the copy.
        """
        size = self._files.size(source)
        if size in (0, self._left_at):
            return False
        self.unpack()
        with self._files.open(source) as original, self._held() as copy:
            kept = os.fstat(copy.fileno()).st_size
            if kept > size:
                return False
            if kept != self._left_at and not _begins_with(original, copy, kept):
                if not is_own:
                    return False
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

        `StateFileError` for a packed one that cannot be read; it is kept aside, and reported once.
        """
        if self.path.exists() or not self._packed.exists():
            return
        try:
            plain = gzip.decompress(self._packed.read_bytes())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            aside = self._packed.with_name(f"{self._packed.name}.damaged")
            self._packed.replace(aside)
            message = f"{aside} is damaged and is kept aside: {error}"
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

        Not waited for: a process that was stopped at it may hold it forever.
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


SECOND_COPY = "second"
"""The folder of what the SDK handed over entry by entry, until the raw copy has it all."""

UUIDS = re.compile(rb'"uuid":\s*"([^"]+)"')


class KeptTranscript:
    """The transcript of one session: Claude's own file, and our copy of it."""

    def __init__(
        self,
        root: Path,
        uuid: str,
        *,
        environment: Mapping[str, str],
        directory: str,
        files: ClaudeFiles | None = None,
    ) -> None:
        """`files` reads and writes Claude's own files; None for those of this machine's user."""
        self.uuid = safe_name(uuid)
        self._root = root
        self._files = files if files is not None else OwnFiles()
        self._copy = TranscriptCopy(root, self.uuid, self._files)
        self._environment = environment
        self._directory = directory
        self._source: Path | None = None

    @property
    def source(self) -> Path:
        """Claude's own file, whether it exists or not."""
        if self._source is None or not self._source.exists():
            self._source = transcript_path(self._environment, self._directory, self.uuid)
        return self._source

    def harvest(self) -> None:
        """Copy what is new; cheap when nothing is. What another process is at, or is gone, is left for later."""
        with suppress(FileNotFoundError, BlockingIOError):
            self._copy.grow(self.source)

    def take_from(self, environment: Mapping[str, str], files: ClaudeFiles | None = None) -> None:
        """Copy what the session has more where Claude has this environment, and `files`: it was continued there too."""
        with suppress(OSError):
            other = TranscriptCopy(self._root, self.uuid, files)
            other.grow(transcript_path(environment, self._directory, self.uuid), is_own=False)

    def restore(self) -> bool:
        """Before the session is continued: Claude's file has everything we have; whether it had to be put back."""
        self._copy.grow(self.source)
        self._copy.add(self._second_lines(self._copy.read()))
        copy = self._copy.read()
        ours = _whole_lines(copy)
        if not ours or self._files.size(self.source) >= len(ours):
            with suppress(OSError):  # there is none
                self._files.end_last_line(self.source)
            self._link()
            return False
        if len(ours) < len(copy):
            self._copy.cut(len(ours))
        target = self.source
        self._put_aside_unless_part(target, ours)
        self._files.replace(target, ours)
        self._put_companions_back(target.with_suffix(""))
        self._link()
        return True

    def finish(self, *, is_over: bool) -> None:
        """After a run: everything is copied and on disk, and packed when the session is over."""
        self._copy.grow(self.source)
        self._copy_companions()
        self._copy.sync()
        if self._copy.size() and not self._second_lines(self._copy.read()):
            for second in self._seconds():
                shutil.rmtree(second.with_suffix(""), ignore_errors=True)
                second.unlink()
        if is_over:
            self._copy.pack()

    def lines(self) -> Iterator[bytes]:
        """Every line of our copy."""
        yield from self._copy.read().splitlines()

    def newest_lines(self) -> Iterator[bytes]:
        """Every line of Claude's file, or of our copy when that has more. Nothing is changed by looking."""
        copied = self._copy.peek()
        if self._files.size(self.source) < len(copied):
            yield from copied.splitlines()
            return
        with suppress(OSError), self._files.open(self.source) as file:
            yield from file.read().splitlines()

    def tail(self, size: int) -> list[bytes]:
        """The whole lines among the last `size` bytes of Claude's file, or of our copy when that has more."""
        files, source = self._files, self.source
        if OwnFiles().size(self._copy.path) > files.size(source):
            files, source = OwnFiles(), self._copy.path
        with suppress(OSError), files.open(source) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - size, 0))
            lines = file.read().splitlines()
            return lines if end <= size else lines[1:]
        return []

    def _link(self) -> None:
        """Give Claude's file a second name where Claude looks first; older versions look nowhere else."""
        source, expected = (
            self.source,
            expected_path(self._environment, self._directory, self.uuid),
        )
        if source == expected or not source.exists():
            return
        self._files.link(source, expected)
        self._source = expected

    def _seconds(self) -> list[Path]:
        return sorted((self._root / SECOND_COPY).glob(f"*/{self.uuid}.jsonl"))

    def _second_lines(self, ours: bytes) -> bytes:
        """What only the second copy has, in its order."""
        seconds = self._seconds()
        if not seconds:
            return b""
        known = set(UUIDS.findall(ours))
        found = b"".join(
            line
            for second in seconds
            for line in second.read_bytes().splitlines(keepends=True)
            if line.endswith(b"\n") and _is_new(line, known)
        )
        return b"\n" + found if found and ours and not ours.endswith(b"\n") else found

    def _copy_companions(self) -> None:
        """What subagents and tools of the session wrote."""
        beside = self.source.with_suffix("")
        for path in self._files.below(beside):
            with suppress(OSError), self._files.open(beside / path) as file:
                copy_to(file, self._root / self.uuid / path)

    def _put_companions_back(self, target: Path) -> None:
        ours = self._root / self.uuid
        for path in OwnFiles().below(ours):
            data = (ours / path).read_bytes()
            if self._files.size(target / path) != len(data):
                self._files.replace(target / path, data)

    def _put_aside_unless_part(self, path: Path, ours: bytes) -> None:
        try:
            with self._files.open(path) as file:
                is_part = ours.startswith(file.read())
        except FileNotFoundError:
            return
        except OSError:  # a link or a directory, which a container's agent has put there
            is_part = False
        if not is_part:
            self._files.put_aside(path, f"{path.name}.before-nightherd")


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _is_new(line: bytes, known: set[bytes]) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    uuid = entry.get("uuid") if isinstance(entry, dict) else None
    return isinstance(uuid, str) and uuid.encode() not in known
