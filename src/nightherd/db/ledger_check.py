"""Check of the whole ledger: every line is what was written, and none is missing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nightherd.db.ledger import (
    LedgerLine,
    RawLine,
    decode_line,
    last_whole_line,
    ledger_files,
    read_lines,
    unreadable,
)
from nightherd.files.regular import open_regular


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
        first = decode_line(msgspec.json.Decoder(LedgerLine), raw, f"{path}:1")
        if expected is None and not first.is_beginning:
            raise unreadable(f"{path}:1", f"the ledger begins with change {first.change}, not 1")
        if expected is not None and first.change != expected:
            raise unreadable(f"{path}:1", f"change {first.change}, not {expected}")
        expected = last_whole_line(path)[1] + 1
