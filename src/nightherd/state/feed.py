"""The change feed: the ledger as those who follow state read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nightherd.db.ledger import FILE_NAME, RawLine, read_lines
from nightherd.ports import LedgerEntry

Look = tuple[str, int, int, int]
"""Name, inode, size and time of the ledger's newest file: whoever appends makes one of them another."""


class LedgerFeed:
    """Every committed change of the ledger in `directory`, in order; a ledger that is not there is empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[Look | None, int] = None, 0
        """What the ledger looked like before it was last read to its end, and the change it ended with."""

    def read(self, *, after: int = 0) -> Iterator[LedgerEntry]:
        """Entries with a number above `after`, as far as the ledger goes now."""
        look = _look_at(self._directory)
        seen, last = self._seen
        if look is not None and look == seen and after >= last:
            return  # those who follow ask all day long, and mostly nobody has written since
        last = after
        for line in read_lines(self._directory, RawLine, after=after):
            last = line.change
            yield LedgerEntry(
                change=last,
                at=datetime.fromisoformat(line.at),
                kind=line.kind,
                rows=[(image.table, image.row) for image in line.rows if not image.deleted],
                deleted=[(image.table, image.row) for image in line.rows if image.deleted],
            )
        self._seen = look, last


def _look_at(directory: Path) -> Look | None:
    """What the ledger looks like from outside; None when nothing can be said of it."""
    try:
        newest = max(filter(FILE_NAME.fullmatch, os.listdir(directory)), default=None)  # noqa: PTH208
        found = (directory / newest).stat() if newest is not None else None
    except OSError:
        return None  # whoever reads says what is wrong
    if newest is None or found is None:
        return None
    return newest, found.st_ino, found.st_size, found.st_mtime_ns
