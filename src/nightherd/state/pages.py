"""Whole tables, a page at a time: for those who read every row there is."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.db.connection import Database, Value
from nightherd.state.tables import Table

PAGE = 1_000

Row = tuple[Value, ...]


def rows_by_key(database: Database, table: Table[object]) -> Iterator[Row]:
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
