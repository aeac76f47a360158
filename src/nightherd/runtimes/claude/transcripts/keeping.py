"""Keeping the transcript of a session: found by Claude's own rules, copied while a run goes on, and put back before the session is resumed."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from nightherd.files.atomic import atomic_write_file
from nightherd.files.paths import safe_name
from nightherd.runtimes.claude.transcripts.copy import TranscriptCopy, make_private

SECOND_COPY = "second"
"""The folder of what the SDK handed over entry by entry, until the raw copy has it all."""

UUIDS = re.compile(rb'"uuid":\s*"([^"]+)"')


class KeptTranscript:
    """The transcript of one session: Claude's own file, and our copy of it."""

    def __init__(
        self, root: Path, uuid: str, *, environment: Mapping[str, str], directory: str
    ) -> None:
        self.uuid = safe_name(uuid)
        self._root = root
        self._copy = TranscriptCopy(root, self.uuid)
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

    def restore(self) -> bool:
        """Before the session is gone on with: Claude's file has everything we have; whether it had to be put back."""
        self._copy.grow(self.source)
        self._copy.add(self._second_lines(self._copy.read()))
        copy = self._copy.read()
        ours = _whole_lines(copy)
        if not ours or _size(self.source) >= len(ours):
            _end_last_line(self.source)
            return False
        if len(ours) < len(copy):
            self._copy.cut(len(ours))
        target = self.source
        _put_aside_unless_part(target, ours)
        make_private(target.parent)
        atomic_write_file(target, ours)
        self._put_companions_back(target.with_suffix(""))
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
        if _size(self.source) < len(copied):
            yield from copied.splitlines()
            return
        with suppress(OSError):
            yield from self.source.read_bytes().splitlines()

    def tail(self, size: int) -> list[bytes]:
        """The whole lines among the last `size` bytes of Claude's file."""
        with suppress(OSError), self.source.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - size, 0))
            lines = file.read().splitlines()
            return lines if end <= size else lines[1:]
        return []

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
        if beside.is_dir():
            _copy_newer(beside, self._root / self.uuid)

    def _put_companions_back(self, target: Path) -> None:
        ours = self._root / self.uuid
        if ours.is_dir():
            _copy_newer(ours, target)


def _copy_newer(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_symlink() or not path.is_file():
            continue
        if copy.exists() and copy.stat().st_size == path.stat().st_size:
            continue
        make_private(copy.parent)
        shutil.copyfile(path, copy)
        copy.chmod(0o600)


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _end_last_line(path: Path) -> None:
    """A line that a killed Claude did not finish must not swallow the next one."""
    with suppress(OSError), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")


def _put_aside_unless_part(path: Path, ours: bytes) -> None:
    with suppress(FileNotFoundError):
        if not ours.startswith(path.read_bytes()):
            path.rename(path.with_name(f"{path.name}.before-nightherd"))


def _is_new(line: bytes, known: set[bytes]) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    uuid = entry.get("uuid") if isinstance(entry, dict) else None
    return isinstance(uuid, str) and uuid.encode() not in known


NOT_IN_SLUG = re.compile(r"[^a-zA-Z0-9]")
LONGEST_SLUG = 200


def config_directory(environment: Mapping[str, str]) -> Path:
    """Claude's own directory, for a process with this environment."""
    given = environment.get("CLAUDE_CONFIG_DIR")
    if given:
        return Path(given)
    return Path(environment.get("HOME") or Path.home()) / ".claude"


def slug_of(directory: str) -> str:
    """What Claude calls the folder of a working directory.

    It shortens long ones in a way of its own; they are cut here. A session is found by its id in any folder.
    """
    path = unicodedata.normalize("NFC", os.path.realpath(directory))
    return NOT_IN_SLUG.sub("-", path)[:LONGEST_SLUG]


def transcript_path(environment: Mapping[str, str], directory: str, uuid: str) -> Path:
    """Where Claude's transcript of the session is, or would be looked for if there were one."""
    projects = config_directory(environment) / "projects"
    expected = projects / slug_of(directory) / f"{uuid}.jsonl"
    if expected.exists():
        return expected
    # A session stays where it began, also when it is gone on with from another directory.
    elsewhere = sorted(projects.glob(f"*/{uuid}.jsonl"))
    return elsewhere[0] if elsewhere else expected
