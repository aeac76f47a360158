"""Whole tables, a page at a time: for those who read every row there is."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.db.connection import INVALID_TEXT, Database, Value
from nightherd.errors import StateFileError
from nightherd.state.rows import decoded
from nightherd.state.tables import Table

PAGE = 1_000

Row = tuple[Value, ...]


def rows_by_key(database: Database, table: Table[object]) -> Iterator[Row]:
    """Every row in the order of its key, a page at a time; a text that is not valid UTF-8 as bytes."""
    columns = ", ".join(table.columns)
    statement = (
        f"SELECT {columns} FROM {table.name} WHERE {table.key} > CAST(?1 AS TEXT)"
        f" ORDER BY {table.key} LIMIT {PAGE}"
    )
    after: Value = ""
    while True:
        try:
            page = database.execute(statement, (after,))
        except StateFileError as error:
            if error.code != INVALID_TEXT:
                raise
            found = database.raw(statement, table.columns, (after,))
            page = [tuple(decoded(value) for value in row) for row in found]
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]
