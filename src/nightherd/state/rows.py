"""Rows by key and by list, from a SQLite database: the questions readers and decisions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from nightherd.db.connection import Database, Values
from nightherd.db.queries import Queries
from nightherd.model.execution import Execution
from nightherd.model.ids import ExecutionId, JobId, SessionId
from nightherd.model.job import Job, JobTexts
from nightherd.model.session import Session, SessionKey, SessionMode
from nightherd.state.tables import Table

RowT = TypeVar("RowT")


class SqliteRows:
    """Every row of one open database, as its model type. What it answers is as of the open transaction."""

    def __init__(self, database: Database, queries: Queries) -> None:
        self._database = database
        self._queries = queries
        self._tables: dict[type, Table[Any]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def job(self, id: JobId) -> Job | None:
        return self._find(Job, "job_by_id", id)

    def texts(self, job_id: JobId) -> JobTexts | None:
        return self._find(JobTexts, "job_texts_by_job", job_id)

    def job_with_dedupe_key(self, key: str) -> Job | None:
        return self._find(Job, "job_by_dedupe_key", key)

    def session(self, id: SessionId) -> Session | None:
        return self._find(Session, "session_by_id", id)

    def current_session(self, key: SessionKey) -> Session | None:
        if key.mode is SessionMode.FRESH_PER_JOB:
            return None
        parts = (key.agent, key.mode.value, key.channel_id or "", key.schedule or "")
        return self._find(Session, "current_session", *parts)

    def execution(self, id: ExecutionId) -> Execution | None:
        return self._find(Execution, "execution_by_id", id)

    def next_job_number(self) -> int:
        return self._number("last_job_number") + 1

    def next_session_number(self) -> int:
        return self._number("last_session_number") + 1

    def list(self, row_type: type[RowT], query: str, values: Values) -> Sequence[RowT]:
        """The rows that the named query finds, in its order."""
        found = self._database.execute(self._queries[query], values)
        if not found:
            return ()
        table = self.table(row_type)
        columns = self._columns_of(table.name)
        return [table.row(columns, row) for row in found]

    def table(self, row_type: type[RowT]) -> Table[RowT]:
        """The table of one kind of row."""
        table = self._tables.get(row_type)
        if table is None:
            table = self._tables[row_type] = Table(row_type)
        return table

    def _find(self, row_type: type[RowT], query: str, *values: str) -> RowT | None:
        found = self.list(row_type, query, values)
        return found[0] if found else None

    def _number(self, query: str) -> int:
        return int(str(self._database.execute(self._queries[query])[0][0]))

    def _columns_of(self, table: str) -> tuple[str, ...]:
        columns = self._columns.get(table)
        if columns is None:
            found = self._database.execute(self._queries["columns_of_table"], (table,))
            columns = self._columns[table] = tuple(str(name) for (name,) in found)
        return columns
