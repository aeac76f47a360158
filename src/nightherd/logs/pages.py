"""Pages of the log files, newest first: read from their ends, so that a page costs the same in a long log."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path

import msgspec

from nightherd.logs.files import SUFFIX, files_of, parse
from nightherd.model.log import LogLine, LogPage, LogPlace

FILE_NAME = re.compile(r"(?P<name>.+)\.log(?:\.(?P<number>[0-9]+))?")
FIRST_BLOCK = 8 * 1024
BLOCK = 64 * 1024
END_OF_TIME = datetime.max.replace(tzinfo=UTC)

Entry = tuple[datetime, LogLine]
"""A line, and the time it is sorted by: in a file, never later than that of a line behind it."""


def read_page(directory: Path, name: str | None, before: LogPlace | None, limit: int) -> LogPage:
    """Return the newest lines before a place, of one log or of all. No line of a rotated file is lost."""
    logs = _files_by_name(directory)
    chosen = logs.items() if name is None else [(name, logs.get(name, ()))]
    latest = END_OF_TIME if before is None else before.at
    entries = merge(
        *(_read_back(files, latest) for _, files in sorted(chosen)),
        key=lambda entry: entry[0],
        reverse=True,
    )
    seen = 0 if before is None else before.skip
    page: list[Entry] = []
    same = 0
    """How many entries have the time of the last one."""
    for number, entry in enumerate(entries):
        if number < seen and entry[0] == latest:
            same += 1
            continue
        if len(page) == limit:
            place = LogPlace(at=page[-1][0], skip=same)
            return LogPage(lines=[line for _, line in page], next=place)
        last = page[-1][0] if page else latest
        same = same + 1 if entry[0] == last else 1
        page.append(entry)
    return LogPage(lines=[line for _, line in page])


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a log as it was found: it may be rotated, and so have another name, at any time."""

    path: Path
    newest: Path
    """The file of the same log that is written now."""
    inode: int
    size: int
    changed_at: datetime

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`; nothing when the file is gone."""
        for path in (self.path, *files_of(self.newest)):
            try:
                with path.open("rb") as file:
                    if os.fstat(file.fileno()).st_ino == self.inode:
                        file.seek(start)
                        return file.read(end - start)
            except OSError:
                continue
        return b""


def log_names(directory: Path) -> Sequence[str]:
    """Return every log there is, by its agent's name."""
    return sorted(_files_by_name(directory))


def _files_by_name(directory: Path) -> Mapping[str, Sequence[_File]]:
    """The files of every log, the newest first."""
    found: dict[str, list[tuple[int, _File]]] = {}
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return {}
    for entry in entries:
        match = FILE_NAME.fullmatch(entry.name)
        if match is None:
            continue
        try:
            stat = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        file = _File(
            path=Path(entry.path),
            newest=directory / f"{match['name']}{SUFFIX}",
            inode=stat.st_ino,
            size=stat.st_size,
            changed_at=datetime.fromtimestamp(stat.st_mtime, UTC),
        )
        found.setdefault(match["name"], []).append((int(match["number"] or 0), file))
    return {
        name: [file for _, file in sorted(files, key=lambda one: one[0])]
        for name, files in found.items()
    }


def _read_back(files: Sequence[_File], latest: datetime) -> Iterator[Entry]:
    """The lines of one log up to a time, the last one first."""
    at = END_OF_TIME
    for file in files:
        for text in _lines_back(file, _end_of(file, latest)):
            line = parse(text, at if at is not END_OF_TIME else file.changed_at)
            if line.at.tzinfo is not None:
                at = min(at, line.at)
            if at <= latest:
                yield at, line


def _lines_back(file: _File, end: int) -> Iterator[bytes]:
    """The whole lines before `end`, the last one first; one that is still being written is left out."""
    beginning, size, is_at_end = b"", FIRST_BLOCK, True
    while end > 0:
        start = max(0, end - size)
        pieces = (file.read(start, end) + beginning).split(b"\n")
        if is_at_end:
            pieces.pop()  # empty, or the line that is being written
            is_at_end = not pieces
        beginning = pieces[0] if pieces else b""
        yield from filter(None, reversed(pieces[1:]))
        end, size = start, BLOCK
    if beginning:
        yield beginning


def _end_of(file: _File, latest: datetime) -> int:
    """Where the lines that are later than `latest` begin, or a little behind that."""
    low, high = 0, file.size
    while latest is not END_OF_TIME and high - low > BLOCK:
        middle = (low + high) // 2
        begin, found, rest = file.read(middle, middle + BLOCK).partition(b"\n")
        text, ended, _ = rest.partition(b"\n")
        if not found or not ended:
            break
        if parse(text, latest).at <= latest:
            low = middle
        else:
            high = middle + len(begin) + 1
    return high
