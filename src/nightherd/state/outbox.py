"""The outbox: changes that are committed and on their way into the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nightherd.db.connection import Database
from nightherd.db.ledger import FILE_NAME, Entry, RawLine, read_lines
from nightherd.db.schema import Queries
from nightherd.ports import LedgerEntry

RESTORED = "Restored"
"""The kind of an entry that only keeps the number: the ledger has its rows already."""


def waiting_after(database: Database, change: int) -> list[Entry]:
    """The changes after `change` that the outbox has with their rows."""
    found = database.execute(Queries()["outbox_after"], (change,))
    entries = [
        Entry(change=int(str(number)), at=str(at), kind=str(kind), rows=str(rows))
        for number, at, kind, rows in found
    ]
    return [entry for entry in entries if entry.kind != RESTORED]


def outbox_span(database: Database) -> tuple[int, int]:
    """The first and the last change it holds; 0 and 0 when it holds none."""
    ((first, last),) = database.execute(Queries()["outbox_span"])
    return int(str(first)), int(str(last))


def is_sound(database: Database) -> bool:
    """Whether a quick look over every page finds the database whole."""
    return database.execute("PRAGMA quick_check(1)") == [("ok",)]


Look = tuple[str, int, int, int]
"""Name, inode, size and time of the ledger's newest file: every append changes one of them."""


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
            return  # followers ask often, and mostly nothing was written since
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
        return None  # the reader reports what is wrong
    if newest is None or found is None:
        return None
    return newest, found.st_ino, found.st_size, found.st_mtime_ns
