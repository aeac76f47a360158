"""A damaged ledger, read as far as it can be: what could not be read is told, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nightherd.db.ledger import ALTERED, LedgerLine, ledger_files, refuse_newer
from nightherd.files.checksum import is_intact
from nightherd.files.regular import open_regular

OnLost = Callable[[str], None]
"""Told what cannot be had back, and where it was."""


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
        line = msgspec.json.decode(raw, type=LedgerLine)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse_newer(raw, where)
        on_lost(f"{where}: {error}")
        return None
    refuse_newer(raw, where)
    if not is_intact(raw):
        on_lost(f"{where}: {ALTERED}")
        return None
    return line
