"""A damaged ledger, read as far as it can be: what could not be read is reported, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nightherd.db.ledger import (
    ALTERED,
    LedgerLine,
    RawLine,
    decode_line,
    last_whole_line,
    ledger_files,
    read_lines,
    refuse_newer,
    unreadable,
)
from nightherd.decoding import decode_json, json_decoder
from nightherd.files.regular import is_intact, open_regular

OnLost = Callable[[str], None]
"""Called with what is lost, and where it was."""


def readable_lines(directory: Path, on_lost: OnLost) -> Iterator[LedgerLine]:
    """Every change that can be read, in order. A fragment at the end of a file is not a change.

    A line of a newer nightherd is a `SchemaVersionError`.
    """
    last, unread = 0, 0
    for where, raw in _lines(directory):
        line = _decoded(raw, where, on_lost)
        if line is None:
            unread += 1
            continue
        if line.change <= last:
            on_lost(f"{where}: change {line.change} after change {last}")
            continue
        first = last + 1 + unread
        if line.change > first and not (last == 0 and line.is_beginning):
            on_lost(f"{where}: changes {first} to {line.change - 1} are missing before it")
        last, unread = line.change, 0
        yield line


def _lines(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in ledger_files(directory):
        with open_regular(path) as file:
            for place, raw in enumerate(file, 1):
                if raw.endswith(b"\n"):
                    yield f"{path}:{place}", raw


def _decoded(raw: bytes, where: str, on_lost: OnLost) -> LedgerLine | None:
    try:
        line = decode_json(raw, LedgerLine)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse_newer(raw, where)
        on_lost(f"{where}: {error}")
        return None
    refuse_newer(raw, where)
    if not is_intact(raw):
        on_lost(f"{where}: {ALTERED}")
        return None
    return line


def check_lines(directory: Path) -> None:
    """Check that every line of the ledger is what was written and none is missing.

    `StateFileError` that says where, else nothing.
    """
    _check_ends(directory)
    for _ in read_lines(directory, RawLine):
        pass


def _check_ends(directory: Path) -> None:
    """Check where the ledger begins and that no file is missing, by each file's first and last line."""
    expected: int | None = None
    for path in ledger_files(directory):
        with open_regular(path) as file:
            raw = file.readline()
        if not raw.endswith(b"\n"):
            continue
        first = decode_line(json_decoder(LedgerLine), raw, f"{path}:1")
        if expected is None and not first.is_beginning:
            raise unreadable(f"{path}:1", f"the ledger begins with change {first.change}, not 1")
        if expected is not None and first.change != expected:
            raise unreadable(f"{path}:1", f"change {first.change}, not {expected}")
        expected = last_whole_line(path)[1] + 1
