"""Rows by key and by list, from a SQLite database: the questions readers and decisions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from nightherd.db.connection import Database, Values
from nightherd.db.queries import Queries
from nightherd.model.agent_state import AgentState
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.execution import Execution
from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobTexts
from nightherd.model.schedule import ScheduleState, Slot
from nightherd.model.session import Session, SessionKey, SessionMode
from nightherd.model.worker import Worker
from nightherd.state.tables import Table

RowT = TypeVar("RowT")

BY_KEY: Mapping[type, str] = {
    Job: "job_by_id",
    JobTexts: "job_texts_by_job",
    Execution: "execution_by_id",
    Session: "session_by_id",
    Worker: "worker_by_key",
    AgentState: "agent_by_key",
    ScheduleState: "schedule_by_key",
    Slot: "slot_by_key",
    Checkpoint: "checkpoint_by_key",
}
"""The query that finds one row of each kind."""


class SqliteRows:
    """Every row of one open database, as its model type. What it answers is as of the open transaction."""

    def __init__(self, database: Database, queries: Queries) -> None:
        self._database = database
        self._queries = queries
        self._tables: dict[type, Table[Any]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key."""
        return self._find(kind, BY_KEY[kind], key)

    def job_with_dedupe_key(self, key: str) -> Job | None:
        return self._find(Job, "job_by_dedupe_key", key)

    def current_session(self, key: SessionKey) -> Session | None:
        if key.mode is SessionMode.FRESH_PER_JOB:
            return None
        parts = (key.agent, key.mode.value, key.channel_id or "", key.schedule or "")
        return self._find(Session, "current_session", *parts)

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        found = self._database.execute(self._queries["oldest_running_job"], (agent, besides))
        return JobId(str(found[0][0])) if found else None

    def has_open_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        values = (agent, schedule, besides)
        return bool(self._database.execute(self._queries["open_job_of_schedule"], values))

    def next_job_number(self) -> int:
        return self._number("last_job_number") + 1

    def next_session_number(self) -> int:
        return self._number("last_session_number") + 1

    def next_checkpoint_number(self, job_id: JobId) -> int:
        return self._number("last_checkpoint_number", job_id) + 1

    def list(self, row_type: type[RowT], query: str, values: Values) -> Sequence[RowT]:
        """The rows that the named query finds, in its order; none of a table an older database lacks."""
        table = self.table(row_type)
        columns = self._columns_of(table.name)
        if not columns:
            return ()
        found = self._database.execute(self._queries[query], values)
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

    def _number(self, query: str, *values: str) -> int:
        return int(str(self._database.execute(self._queries[query], values)[0][0]))

    def _columns_of(self, table: str) -> tuple[str, ...]:
        columns = self._columns.get(table)
        if columns is None:
            found = self._database.execute(self._queries["columns_of_table"], (table,))
            columns = self._columns[table] = tuple(str(name) for (name,) in found)
        return columns
