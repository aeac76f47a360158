"""The change feed: the ledger as those who follow state read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nightherd.db.ledger import RawLine, read_lines
from nightherd.ports import LedgerEntry


class LedgerFeed:
    """Every committed change of the ledger in `directory`, in order; a ledger that is not there is empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, *, after: int = 0) -> Iterator[LedgerEntry]:
        """Entries with a number above `after`, as far as the ledger goes now."""
        for line in read_lines(self._directory, RawLine, after=after):
            yield LedgerEntry(
                change=line.change,
                at=datetime.fromisoformat(line.at),
                kind=line.kind,
                rows=[(image.table, image.row) for image in line.rows],
            )
