"""Reading jobs: synchronous, read-only, cheap to open. A directory without a database reads as empty.

The command that lists jobs stands on this module alone: it loads rows of jobs and workers, no event loop and
nothing of writing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from nightherd.db.connection import Database, open_for_reading
from nightherd.db.schema import Queries, brought_forward, known_schema, refuse_newer, schema_number
from nightherd.errors import StateError, StateFileError
from nightherd.model.ids import JobId
from nightherd.model.jobs.filter import filter_of
from nightherd.model.jobs.job import Execution, Job, JobQuery, JobTexts
from nightherd.model.worker import Worker
from nightherd.next_step import Action, NextStep
from nightherd.state.filtered_list import job_statements
from nightherd.state.layout import DATABASE, LEDGER, last_recorded
from nightherd.state.rows import SqliteRows
from nightherd.state.table import JOB_TABLES

NEWEST = 2**63 - 1
"""The cursor before which every row stands."""

DAY_PREFIX = len("job-YYYY-MM-DD")
"""Up to here a prefix of an id names whole days, beyond it a few jobs of one."""


CatchUp = Callable[[bool], None]
"""Brings database and ledger to agree; the argument says whether it waits for a live writer to finish."""


class SqliteJobReader:
    """Questions about the jobs in `state_dir`; each answer is consistent in itself.

    A database that has lost changes which the ledger has (its WAL is gone, the power was cut) shows old rows.
    With `catch_up` they are put back before the first answer, or it is a `StateFileError`; without, they are shown.
    """

    _table_names = JOB_TABLES
    """The tables it can read."""

    def __init__(self, state_dir: Path, *, catch_up: CatchUp | None = None) -> None:
        self._catch_up = catch_up
        self._path = Path(state_dir) / DATABASE
        self._queries = Queries()
        self._database: Database | None = None
        self._older: Database | None = None
        """The file itself, when it has an older schema and answers come from a copy of it."""
        self._version = 0
        self._found: SqliteRows | None = None

    def find_job(self, job_id: JobId) -> Job | None:
        rows = self._rows()
        return rows.get(Job, job_id) if rows else None

    def find_texts(self, job_id: JobId) -> JobTexts | None:
        rows = self._rows()
        return rows.get(JobTexts, job_id) if rows else None

    def list_jobs(self, query: JobQuery) -> Sequence[Job]:
        rows = self._rows()
        if rows is None:
            return ()
        before = query.before if query.before is not None else NEWEST
        if query.filter is not None:
            filter = filter_of(query)
            if filter is None:
                return ()
            jobs = rows.select(Job, job_statements(filter, before, query.limit))
            newest = sorted(jobs, key=lambda job: (job.created_at, job.number), reverse=True)
            return newest[: query.limit]
        match query.agent, query.status:
            case None, None:
                return rows.list(Job, "list_jobs", (before, query.limit))
            case agent, None:
                return rows.list(Job, "list_jobs_by_agent", (before, query.limit, agent))
            case None, status:
                return rows.list(Job, "list_jobs_by_status", (before, query.limit, status.value))
            case agent, status:
                values = (before, query.limit, agent, status.value)
                return rows.list(Job, "list_jobs_by_agent_and_status", values)

    def job_ids(self, prefix: str, limit: int) -> Sequence[JobId]:
        if self._rows() is None or self._database is None:
            return ()
        is_short = len(prefix) <= DAY_PREFIX
        name = "job_ids_of_short_prefix" if is_short else "job_ids_of_long_prefix"
        # Ids are ASCII, so everything with the prefix stands before the prefix and one beyond ASCII.
        values = (prefix, prefix + "\x7f", limit)
        return [JobId(str(id)) for (id,) in self._database.execute(self._queries[name], values)]

    def jobs_ahead(self, job: Job, limit: int) -> Sequence[Job]:
        rows = self._rows()
        if rows is None or job.session_id is None:
            return ()
        return rows.list(Job, "jobs_ahead", (job.session_id, job.number, limit))

    def spans_of_job(self, job_id: JobId) -> Sequence[tuple[datetime, datetime | None]]:
        rows = self._rows()
        if rows is None:
            return ()
        try:
            return [
                (
                    datetime.fromisoformat(str(begun)),
                    None if ended is None else datetime.fromisoformat(str(ended)),
                )
                for begun, ended in rows.values("spans_of_job", job_id)
            ]
        except ValueError:  # a damaged time: the ledger has it
            executions = rows.list(Execution, "executions_of_job", (job_id,))
            return [(one.started_at, one.finished_at) for one in executions]

    def live_workers(self) -> Sequence[Worker]:
        rows = self._rows()
        return rows.list(Worker, "live_workers", ()) if rows else ()

    def find_worker(self, worker_id: str) -> Worker | None:
        rows = self._rows()
        return rows.get(Worker, worker_id) if rows else None

    def close(self) -> None:
        for database in (self._database, self._older):
            if database is not None:
                database.close()
        self._database = self._older = self._found = None

    def _rows(self) -> SqliteRows | None:
        """The rows, once there are any: a database may appear after this reader was made."""
        if self._older is not None and self._older.data_version() != self._version:
            self.close()  # another process has written, and so migrated it
        if self._found is None:
            # Before the database is: it commits first, so a sound one knows at least as much.
            recorded = self._recorded()
            database = open_for_reading(self._path)
            if database is None:
                self._refuse_lost()
                return None
            try:
                found = schema_number(database, self._queries)
            except BaseException:
                database.close()
                raise
            if found == 0 or found > known_schema():
                database.close()
                refuse_newer(found, known_schema(), self._path)
                return None
            try:
                self._agree(database, recorded, is_current=found == known_schema())
            except BaseException:
                database.close()
                raise
            if found < known_schema():
                self._older, self._version = database, database.data_version()
                database = brought_forward(database, self._queries)
            self._database = database
            self._found = SqliteRows(database, self._queries, self._table_names)
        return self._found

    def _agree(self, database: Database, recorded: int, *, is_current: bool) -> None:
        """See to it that the database knows what the ledger knew before it was opened, and the other way round."""
        if self._catch_up is None:
            return
        last = self._last_change(database)
        if recorded > last:
            self._put_back(database, recorded, is_current=is_current)
        elif recorded < last and is_current and self._recorded() < last:
            with suppress(
                StateError
            ):  # the database has it: the next writer gives it to the ledger
                self._catch_up(False)

    def _put_back(self, database: Database, recorded: int, *, is_current: bool) -> None:
        first = self._last_change(database) + 1
        cause: StateError | None = None
        try:
            if is_current and self._catch_up is not None:
                self._catch_up(True)
        except StateError as error:
            cause = error
        if self._last_change(database) < recorded:
            why = f"; they cannot be restored: {cause.message}" if cause is not None else ""
            raise StateFileError(
                f"{self._path} has lost the changes {first} to {recorded}: its WAL is gone,"
                f" or an old copy was restored{why}",
                path=str(self._path),
                code="BEHIND_LEDGER",
                hint="restore them from the ledger",
                next_step=NextStep(Action.REPAIR_STATE),
            ) from cause

    def _last_change(self, database: Database) -> int:
        ((_, last),) = database.execute(self._queries["outbox_span"])
        return int(str(last))

    def _recorded(self) -> int:
        return last_recorded(self._path.with_name(LEDGER))

    def _refuse_lost(self) -> None:
        """A ledger without a database is not an empty state: the database was deleted."""
        ledger = self._path.with_name(LEDGER)
        if any(path.stat().st_size for path in ledger.glob("*.jsonl")):
            raise StateFileError(
                f"{self._path} is gone, and the ledger beside it has its rows",
                path=str(self._path),
                code="DATABASE_GONE",
                next_step=NextStep(Action.REBUILD_STATE),
            )
