"""Agreement: the ledger, replayed, is the database, row for row. What keeps the second copy honest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from nightherd.db.connection import Database, open_for_reading
from nightherd.db.schema import Queries
from nightherd.state.directory import StateDirectory
from nightherd.state.outbox import waiting_after
from nightherd.state.replay import OnChange, replay
from nightherd.state.rows import Row, rows_by_key
from nightherd.state.table import Table
from nightherd.state.tables import PASSING, TABLES, table_of

ROOM = ".replay-"
"""How the directory begins in which the ledger is replayed; gone when the comparison is over."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One row that is not the same in both; `columns` are those that differ."""

    table: str
    key: str
    columns: tuple[str, ...] = ()
    """Empty when only one of the two has the row."""
    is_in_database: bool = True
    is_in_ledger: bool = True


def differences(
    root: Path, *, at: datetime, limit: int = 20, on_change: OnChange = lambda change: None
) -> list[Difference]:
    """Rows of the database that the ledger does not give again, at most `limit`; none when all is well.

    Compares a snapshot, also while other processes write. Needs as much free space as the database takes.
    """
    directory = StateDirectory(root=root)
    database = open_for_reading(directory.database)
    if database is None:
        return []
    try:
        database.execute("BEGIN")
        last = int(str(database.execute(Queries()["outbox_span"])[0][1]))
        # The ledger is written after the commit: what it lacks yet, the same moment's outbox has.
        waiting = waiting_after(database, 0)
        with TemporaryDirectory(prefix=ROOM, dir=root) as room:
            copy_path = Path(room) / "replayed.db"
            replay(
                directory.ledger,
                copy_path,
                at=at,
                until=last,
                waiting=[entry.decoded() for entry in waiting],
                on_change=on_change,
            )
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
            table: Table[Any] = table_of(row_type)
            for difference in _differing(
                table, rows_by_key(database, table), rows_by_key(copy, table)
            ):
                found.append(difference)
                if len(found) >= limit:
                    return found
    finally:
        copy.close()
    return found


def _differing(
    table: Table[Any], ours: Iterator[Row], theirs: Iterator[Row]
) -> Iterator[Difference]:
    """Both in the order of their keys, side by side; what the ledger does not hear of is passed over."""
    passing = PASSING.get(table.name, frozenset())
    mine, other = next(ours, None), next(theirs, None)
    while mine is not None or other is not None:
        if other is None or (mine is not None and str(mine[0]) < str(other[0])):
            assert mine is not None  # noqa: S101 (the loop continues while one of them is there)
            yield Difference(table=table.name, key=str(mine[0]), is_in_ledger=False)
            mine = next(ours, None)
        elif mine is None or str(other[0]) < str(mine[0]):
            yield Difference(table=table.name, key=str(other[0]), is_in_database=False)
            other = next(theirs, None)
        else:
            pairs = zip(table.columns, mine, other, strict=True)
            columns = tuple(name for name, one, two in pairs if one != two and name not in passing)
            if columns:
                yield Difference(table=table.name, key=str(mine[0]), columns=columns)
            mine, other = next(ours, None), next(theirs, None)
