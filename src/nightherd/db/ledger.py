"""The ledger: every committed change as row images, append-only, one file per month (docs/formats/ledger.md).

Only the holder of `write.lock` appends. Complete lines are never changed or removed; what a killed
appender left of a line is cut before the next one is written, and comes again from the outbox.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from nightherd.db.failure import unusable
from nightherd.decoding import decode_json, json_decoder
from nightherd.errors import SchemaVersionError, StateFileError
from nightherd.files.atomic import write_all
from nightherd.files.regular import is_intact, last_line, open_regular, with_checksum
from nightherd.next_step import Action, NextStep
from nightherd.ports import Probe

VERSION = 1
SNAPSHOT = "Snapshot"
"""The kind of lines that hold every row there was: a ledger may begin with them instead of with change 1."""
FILE_NAME = re.compile(r"\d{4}-\d{2}\.jsonl")
TAIL_BYTES = 64 * 1024
ALTERED = "its checksum does not match: it was changed after it was written"


LineT = TypeVar("LineT", bound="_Number")
WholeT = TypeVar("WholeT", "LedgerLine", "RawLine")


class RowImage(msgspec.Struct, frozen=True):
    """One row as its table has it after the change."""

    table: str
    row: dict[str, Any]
    deleted: bool = False
    """Whether the change deleted the row; `row` has its key."""


class RawImage(msgspec.Struct, frozen=True):
    """The same with its row left as it is written, for those who look at some tables only."""

    table: str
    row: msgspec.Raw
    deleted: bool = False


class _Version(msgspec.Struct, frozen=True):
    """What every line of every version says."""

    v: int


class _Number(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a line as it takes to know which change it is."""

    v: int
    change: int


class LedgerLine(_Number, frozen=True, kw_only=True):
    """One committed change."""

    at: str
    kind: str
    rows: tuple[RowImage, ...]

    @property
    def is_beginning(self) -> bool:
        """Whether a ledger may begin with this line: nothing before it is needed."""
        return self.change == 1 or self.kind == SNAPSHOT


class RawLine(_Number, frozen=True, kw_only=True):
    """One committed change, its rows as they are written."""

    at: str
    kind: str
    rows: tuple[RawImage, ...]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the outbox: a committed change on its way into the ledger; `rows` is JSON already."""

    change: int
    at: str
    kind: str
    rows: str

    @property
    def values(self) -> tuple[int, str, str, str]:
        """The row of the outbox, in the order of its columns."""
        return self.change, self.at, self.kind, self.rows

    def decoded(self) -> LedgerLine:
        """The line as readers have it; `StateFileError` when it is none."""
        decoder = json_decoder(LedgerLine)
        return decode_line(decoder, self.line(), f"change {self.change} of the outbox")

    def line(self) -> bytes:
        """Return the line: the same bytes in every process."""
        head = f'{{"v":{VERSION},"change":{self.change},"at":"{self.at}","kind":"{self.kind}"'
        return with_checksum(f'{head},"rows":{self.rows}}}'.encode()) + b"\n"


class _End(msgspec.Struct, frozen=True, kw_only=True):
    """Where the ledger ends: the last file with a whole line, the size of its whole lines, the last change."""

    path: Path | None = None
    size: int = 0
    change: int = 0


class Ledger:
    """The ledger's end, for the one who holds `write.lock`."""

    def __init__(self, directory: Path, probe: Probe) -> None:
        self.directory = directory
        self._probe = probe
        self._end: _End | None = None

    def last_change(self) -> int:
        """The number of the last change it holds, 0 for none. Cheap while no other process has appended."""
        try:
            return self._find_end().change
        except OSError as error:
            raise self._unusable(error, "read") from error

    def append(self, entries: Sequence[Entry]) -> None:
        """Add `entries`, which follow the last change without a gap. When it returns, SIGKILL loses none."""
        try:
            end = self._find_end()
            self._end = None  # unknown until this has worked
            for entry_file, lines in _by_file(self.directory, end, entries):
                end = self._extend(end, entry_file, lines)
            self._end = end
        except OSError as error:
            raise self._unusable(error, "append") from error

    def sync(self) -> None:
        """Everything it holds survives a power cut from here on."""
        try:
            end = self._find_end()
            if end.path is not None:
                _sync(end.path)
                _sync(self.directory)
        except OSError as error:
            raise self._unusable(error, "sync") from error

    def _extend(self, end: _End, path: Path, entries: Sequence[Entry]) -> _End:
        if end.path is not None and path != end.path:
            _sync(end.path)  # the newest file is the only one that `sync` looks at
        size = end.size if path == end.path else 0
        lines = b"".join(entry.line() for entry in entries)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            # What lies beyond the last whole line is a killed appender's fragment.
            if os.fstat(descriptor).st_size != size:
                os.truncate(descriptor, size)
            half = len(lines) // 2
            write_all(descriptor, lines[:half])
            self._probe("ledger.half_written")
            write_all(descriptor, lines[half:])
        finally:
            os.close(descriptor)
        return _End(path=path, size=size + len(lines), change=entries[-1].change)

    def _unusable(self, error: OSError, operation: str) -> StateFileError:
        """By the name of the file it is about, where the system gives one."""
        return unusable(error, Path(error.filename or self.directory), operation)

    def _find_end(self) -> _End:
        known = self._end
        if known is not None and known.path is not None and self._is_end(known.path, known.size):
            return known
        end = _End()
        for path in reversed(ledger_files(self.directory)):
            size, change = last_whole_line(path)
            if size:
                end = _End(path=path, size=size, change=change)
                break
        self._end = end
        return end

    def _is_end(self, path: Path, size: int) -> bool:
        """Return whether nothing was appended since: neither there, nor to the file of a later month."""
        if _size(path) != size:
            return False
        names = os.listdir(self.directory)  # noqa: PTH208 (asked at every commit)
        return path.name == max(filter(FILE_NAME.fullmatch, names), default=None)


def _by_file(
    directory: Path, end: _End, entries: Sequence[Entry]
) -> list[tuple[Path, list[Entry]]]:
    """Which entries go to which file. The clock may go back over the turn of a month: the ledger does not."""
    files: list[tuple[Path, list[Entry]]] = []
    path, change = end.path, end.change
    name = path.name if path is not None else ""
    for entry in entries:
        if entry.change != change + 1:
            raise StateFileError(
                f"{directory}: change {entry.change} cannot follow change {change}",
                path=str(directory),
                operation="append",
                code="LEDGER_GAP",
                hint="restore the missing ledger files from a backup, or start a new ledger",
                next_step=NextStep(Action.REPAIR_STATE),
            )
        change = entry.change
        month = f"{entry.at[:7]}.jsonl"
        if path is None or month > name:
            path, name = directory / month, month
        if not files or files[-1][0] is not path:
            files.append((path, []))
        files[-1][1].append(entry)
    return files


def ledger_files(directory: Path) -> list[Path]:
    """The ledger's files, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if FILE_NAME.fullmatch(path.name))


def read_ledger(directory: Path, *, after: int = 0) -> Iterator[LedgerLine]:
    """Every change after `after`, in order, without gaps, as `read_lines` gives them."""
    return read_lines(directory, LedgerLine, after=after)


def read_lines(directory: Path, kind: type[WholeT], *, after: int = 0) -> Iterator[WholeT]:
    """Every change after `after`, in order, without gaps. A fragment at the very end is not a change yet.

    Files that hold only earlier changes are not read, and earlier lines of a file are leapt over: asking what
    is new costs the same after a million changes. A line that cannot be read, or a gap, among those that
    are read is a `StateFileError` that says where.
    """
    decoder = json_decoder(kind)
    numbers = json_decoder(_Number)
    expected: int | None = None
    is_new = False
    for path in _from(ledger_files(directory), after + 1, numbers):
        with open_regular(path) as file:
            start = file.seek(_leap(file, after, numbers))
            name, suffix = str(path), f" after byte {start}" if start else ""
            for place, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    break
                where = f"{name}:{place}{suffix}"
                if not is_new:
                    # Of the few lines before the first that is asked for, only the number matters.
                    change = decode_line(numbers, raw, where).change
                    is_new = change > after
                if not is_intact(raw):
                    raise unreadable(where, ALTERED)
                line = decode_line(decoder, raw, where) if is_new else None
                change = line.change if line is not None else change
                if expected is not None and change != expected:
                    raise unreadable(where, f"change {change}, not {expected}")
                expected = change + 1
                if line is not None:
                    yield line


def _from(files: list[Path], change: int, numbers: msgspec.json.Decoder[_Number]) -> list[Path]:
    """The files from the one that holds `change` on."""
    for place in range(len(files) - 1, 0, -1):
        with open_regular(files[place]) as file:
            first = file.readline()
        if (
            first.endswith(b"\n")
            and decode_line(numbers, first, f"{files[place]}:1").change <= change
        ):
            return files[place:]
    return files


def _leap(file: BinaryIO, after: int, numbers: msgspec.json.Decoder[_Number]) -> int:
    """Where a line begins from which everything after `after` follows, found by halving.

    0 when a line in between cannot be read: a reader from the beginning finds it and reports where.
    """
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > TAIL_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        start = file.tell()
        raw = file.readline()
        if start >= high or not raw.endswith(b"\n"):
            high = middle
            continue
        try:
            change = numbers.decode(raw).change
        except (msgspec.DecodeError, UnicodeDecodeError):
            return 0
        if change <= after:
            low = start
        else:
            high = middle
    return low


def decode_line(decoder: msgspec.json.Decoder[LineT], raw: bytes, where: str) -> LineT:
    try:
        line = decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse_newer(raw, where)
        raise unreadable(where, str(error)) from error
    if line.v > VERSION:
        refuse_newer(raw, where)
    if line.v != VERSION:
        raise unreadable(where, f"version {line.v}, this nightherd reads {VERSION}")
    return line


def refuse_newer(raw: bytes, where: str) -> None:
    """`SchemaVersionError` for a line of a newer nightherd: that it cannot be read here is no damage."""
    try:
        found = decode_json(raw, _Version).v
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if found > VERSION:
        raise SchemaVersionError(
            f"{where}: written by a newer nightherd (version {found}, this one reads {VERSION})",
            hint="upgrade nightherd",
        )


def unreadable(where: str, what: str) -> StateFileError:
    return StateFileError(
        f"{where}: {what}",
        path=where,
        operation="read",
        code="LEDGER_DAMAGED",
        hint="restore the file from a backup if you can; otherwise verify the state directory",
        next_step=NextStep(Action.VERIFY_STATE),
    )


def last_whole_line(path: Path) -> tuple[int, int]:
    """Where the file's last whole line ends, and the change it holds; 0 and 0 when there is none."""
    with open_regular(path) as file:
        end, line = last_line(file, TAIL_BYTES)
    if not end:
        return 0, 0
    decoder = json_decoder(_Number)
    return end, decode_line(decoder, line, f"{path}: last line").change


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
