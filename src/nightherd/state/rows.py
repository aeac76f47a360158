"""Rows by key and by list, from a SQLite database: the questions readers and decisions share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from nightherd.db.connection import INVALID_TEXT, Database, Value, Values
from nightherd.db.schema import Queries
from nightherd.errors import StateFileError
from nightherd.next_step import Action, NextStep
from nightherd.state.row_images import last_image
from nightherd.state.table import JOB_TABLES, UNREADABLE, Table, table_for

RowT = TypeVar("RowT", bound=msgspec.Struct)


class SqliteRows:
    """Every row of one open database, as its model type. What it answers is as of the open transaction."""

    def __init__(
        self,
        database: Database,
        queries: Queries,
        names: Mapping[type[msgspec.Struct], str] = JOB_TABLES,
    ) -> None:
        self._database = database
        self._names = names
        self._queries = queries
        self._tables: dict[type, Table[Any]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key."""
        return self._find(kind, self.table(kind).by_key, (key,))

    def list(self, row_type: type[RowT], query: str, values: Values) -> Sequence[RowT]:
        """The rows that the named query finds, in its order; none of a table an older database lacks.

        A damaged row is what the ledger says; one that the ledger does not have is left out.
        """
        return [
            row for row in self._list(row_type, self._queries[query], values) if row is not None
        ]

    def select(
        self, row_type: type[RowT], statements: Iterable[tuple[str, Values]]
    ) -> Sequence[RowT]:
        """The rows that the statements find, as `list` does, one statement after the other."""
        return [
            row
            for statement, values in statements
            for row in self._list(row_type, statement, values)
            if row is not None
        ]

    def table(self, row_type: type[RowT]) -> Table[RowT]:
        """The table of one kind of row."""
        table = self._tables.get(row_type)
        if table is None:
            table = self._tables[row_type] = table_for(row_type, self._names[row_type])
        return table

    def find(self, row_type: type[RowT], query: str, *values: str) -> RowT | None:
        """The first row that the named query finds; `StateFileError` when it is damaged and not in the ledger."""
        return self._find(row_type, self._queries[query], values)

    def _find(self, row_type: type[RowT], statement: str, values: tuple[str, ...]) -> RowT | None:
        found = self._list(row_type, statement, values)
        if found and found[0] is None:
            table = self.table(row_type).name
            raise StateFileError(
                f"the row of {table} for {' '.join(values)} is damaged, and the ledger does not have it",
                path=str(self._database.path),
                operation="read",
                code="ROW_DAMAGED",
                next_step=NextStep(Action.VERIFY_STATE),
            )
        return found[0] if found else None

    def values(self, query: str, *values: Value) -> Sequence[tuple[Value, ...]]:
        """What the named query finds, as it is; without rows whose texts are damaged."""
        try:
            return self._database.execute(self._queries[query], values)
        except StateFileError as error:
            if error.code != INVALID_TEXT:
                raise
        return self._database.readable(self._queries[query], values)

    def number(self, query: str, *values: str) -> int:
        """The one number that the named query gives."""
        return int(str(self.values(query, *values)[0][0]))

    def restored(self, table: Table[RowT], key: str, found: Mapping[str, Value]) -> RowT | None:
        """The row as the ledger has it, for one that is damaged in the database, where it was `found` so."""
        image = last_image(self._database, table.name, table.key, key)
        return table.row(tuple(image), tuple(image.values())) if image is not None else None

    def _list(
        self, row_type: type[RowT], statement: str, values: Values
    ) -> Sequence[RowT] | Sequence[RowT | None]:
        """The rows that the statement finds; None for a damaged one that the ledger does not have."""
        table = self.table(row_type)
        columns = self._columns_of(table.name)
        if not columns:
            return ()
        if table.names_columns:
            columns = table.columns
        make = table.maker(columns)
        try:
            found = self._database.execute(statement, values)
            return [make(row) for row in found]
        except UNREADABLE:
            pass
        except StateFileError as error:
            if error.code != INVALID_TEXT:
                raise
        found = self._database.raw(statement, columns, values)
        return [self._sound(table, columns, row) for row in found]

    def _sound(
        self, table: Table[RowT], columns: tuple[str, ...], values: Sequence[Value]
    ) -> RowT | None:
        """The row of these raw values; where they are damaged, the row as the ledger has it."""
        values = [decoded(value) for value in values]
        if not table.damaged_columns(columns, values):
            return table.row(columns, values)
        key = values[columns.index(table.key)]
        if not isinstance(key, str):
            return None
        return self.restored(table, key, dict(zip(columns, values, strict=True)))

    def _columns_of(self, table: str) -> tuple[str, ...]:
        columns = self._columns.get(table)
        if columns is None:
            found = self._database.execute(self._queries["columns_of_table"], (table,))
            columns = self._columns[table] = tuple(str(name) for (name,) in found)
        return columns


def decoded(value: Value) -> Value:
    """A stored text as text; bytes that are not valid UTF-8 stay bytes."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


PAGE = 1_000

Row = tuple[Value, ...]


def rows_by_key(database: Database, table: Table[Any]) -> Iterator[Row]:
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
