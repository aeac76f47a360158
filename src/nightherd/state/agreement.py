"""Agreement: the ledger, replayed, is the database, row for row. What keeps the second copy honest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from nightherd.db.connection import Database, Value, open_for_reading
from nightherd.db.queries import Queries
from nightherd.state.directory import StateDirectory
from nightherd.state.kinds import TABLES
from nightherd.state.replay import replay
from nightherd.state.tables import Table

PAGE = 1_000

Rows = tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row that is not the same in both."""

    table: str
    key: str


def differences(root: Path, *, at: datetime, limit: int = 20) -> list[Difference]:
    """Rows of the database that the ledger does not give again, at most `limit`; none when all is well.

    Compares as of one moment, whoever writes meanwhile. Needs as much free space as the database takes.
    """
    directory = StateDirectory(root=root)
    database = open_for_reading(directory.database)
    if database is None:
        return []
    try:
        database.execute("BEGIN")
        last = int(str(database.execute(Queries()["outbox_span"])[0][1]))
        with TemporaryDirectory(prefix=".replay-", dir=root) as room:
            copy_path = Path(room) / "replayed.db"
            replay(directory.ledger, copy_path, at=at, until=last)
            return _compare(database, copy_path, limit)
    finally:
        database.close()


def _compare(database: Database, copy_path: Path, limit: int) -> list[Difference]:
    copy = open_for_reading(copy_path)
    if copy is None:
        return []
    found: list[Difference] = []
    try:
        for row_type in TABLES:
            table: Table[object] = Table(row_type)
            pairs = zip_longest(_rows(database, table), _rows(copy, table))
            for ours, theirs in pairs:
                if ours != theirs:
                    row = ours if ours is not None else theirs
                    found.append(Difference(table=table.name, key=str(row[0]) if row else ""))
                if len(found) >= limit:
                    return found
    finally:
        copy.close()
    return found


def _rows(database: Database, table: Table[object]) -> Iterator[Rows]:
    """Every row in the order of its key, a page at a time."""
    columns = ", ".join(table.columns)
    statement = f"SELECT {columns} FROM {table.name} WHERE {table.key} > ?1 ORDER BY {table.key} LIMIT {PAGE}"
    after: Value = ""
    while True:
        page = database.execute(statement, (after,))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]
