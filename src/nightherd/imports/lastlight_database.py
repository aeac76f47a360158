"""The database of Last Light: read without writing to it, its schema checked, its rows one by one.

SQLite makes files beside a database in WAL mode even to read it. So a database without a log is opened as one that
nothing writes, and one with a log is copied with it first.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nightherd.db.connection import Database, Value, open_for_writing, open_immutable
from nightherd.errors import NotFoundError, RefusedError, StateError
from nightherd.imports.lastlight_rows import Damage, Row, plain
from nightherd.imports.lines import shown
from nightherd.next_step import Action, NextStep

FILE = "lastlight.db"
BESIDE = ("-wal", "-journal")
"""What SQLite keeps beside a database that belongs to it."""
TRIES = 5
EXECUTIONS, RUNS, APPROVALS = "executions", "workflow_runs", "workflow_approvals"
CRONS, WORKFLOWS = "cron_overrides", "workflow_overrides"
SCHEMA: Mapping[str, str] = {
    EXECUTIONS: "id trigger_type trigger_id skill repo issue_number started_at finished_at success error turns"
    " duration_ms session_id cost_usd input_tokens cache_creation_input_tokens cache_read_input_tokens output_tokens"
    " api_duration_ms stop_reason workflow_run_id output_text",
    RUNS: "id workflow_name trigger_id repo issue_number current_phase phase_history status context scratch"
    " restart_count started_at updated_at finished_at",
    APPROVALS: "id workflow_run_id gate summary status kind requested_by responded_by response responded_at"
    " created_at",
    CRONS: "name enabled schedule updated_at updated_by",
    WORKFLOWS: "name enabled updated_at updated_by",
}
"""The columns that the older and the newer schema have in common."""


class Tables:
    """The tables of one open database."""

    def __init__(self, database: Database, damage: Damage) -> None:
        self._database = database
        self._damage = damage

    def names(self) -> list[str]:
        """Return the tables that are there, those of SQLite itself left out."""
        found = self._database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return [str(name) for (name,) in found]

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none when there is no such table."""
        found = self._database.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return [str(name) for (name,) in found]

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        ((count,),) = self._database.execute(f"SELECT count(*) FROM {_quoted(table)}")
        return int(str(count))

    def places(self, table: str, columns: Sequence[str]) -> list[tuple[int, Row]]:
        """Return the rowid and these columns of every row, in the order of the columns.

        Where the table is damaged its rows are read one by one: one that cannot be read costs no other.
        """
        names = [_quoted(name) for name in columns]
        query = f"SELECT rowid AS place, {', '.join(names)} FROM {_quoted(table)}"
        try:
            found = self._database.raw(query, ["place", *names])
        except StateError:
            found = list(self._one_by_one(table, query, ["place", *names]))
        rows = [(int(str(place)), tuple(values)) for place, *values in found]
        rows.sort(key=lambda row: ([str(plain(value)) for value in row[1]], row[0]))
        return [
            (place, Row(table=table, key="", values=dict(zip(columns, values, strict=True))))
            for place, values in rows
        ]

    def _one_by_one(
        self, table: str, query: str, columns: Sequence[str]
    ) -> Iterator[tuple[Value, ...]]:
        try:
            places = self._database.execute(f"SELECT rowid FROM {_quoted(table)}")
        except StateError as error:
            self._damage.table(table, error)
            return
        for place in [int(str(found)) for (found,) in places]:
            try:
                yield from self._database.raw(f"{query} WHERE rowid = ?", columns, (place,))
            except StateError as error:
                self._damage.table(f"{table}/row {place}", error)

    def rows(self, table: str, order: Sequence[str]) -> Iterator[Row]:
        """Yield every row in the order of these columns; one that cannot be read is reported and costs no other."""
        for place, _ in self.places(table, order):
            row = self.row(table, place)
            if row is not None:
                yield row

    def row(self, table: str, place: int) -> Row | None:
        """Return one row by its rowid; None, and a report, when it cannot be read."""
        columns = self.columns(table)
        query = f"SELECT * FROM {_quoted(table)} WHERE rowid = ?"
        try:
            found = self._database.raw(query, [_quoted(name) for name in columns], (place,))
        except StateError as error:
            self._damage.table(f"{table}/row {place}", error)
            return None
        values = dict(zip(columns, found[0], strict=True)) if found else {}
        key = plain(values.get("id", values.get("name")))
        return Row(table=table, key=key if isinstance(key, str) else f"row {place}", values=values)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def locate(given: Path) -> Path:
    """Return the database that `given` is, or that is in the directory `given`."""
    path = given / FILE if given.is_dir() else given
    if not path.is_file():
        raise NotFoundError(
            f"{shown(given)} is not a database or state directory of Last Light",
            next_step=NextStep(Action.IMPORT_LASTLIGHT),
        )
    return path


@contextmanager
def opened_tables(path: Path, damage: Damage) -> Iterator[Tables]:
    """Open the database for reading. `RefusedError` for one that is not Last Light's, or is written all the time."""
    with ExitStack() as opened:
        state = _state(path)
        has_log = any(size for size, _ in state[1:])
        try:
            database = _opened(path, opened) if has_log else open_immutable(path)
            opened.callback(database.close)
            tables = Tables(database, damage)
            _check(tables, path)
        except StateError as error:
            raise _refused(path, error.message) from error
        yield tables
        if not has_log and _state(path) != state:
            damage.report.skip(shown(path), "it changed while it was read; import it again")


def _opened(path: Path, opened: ExitStack) -> Database:
    """The database with its log, in a copy that goes when `opened` ends."""
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="nightherd-import-"))
    return open_for_writing(_copied(path, Path(folder)))


def _copied(path: Path, folder: Path) -> Path:
    """A copy of the database with its log, which nothing wrote meanwhile."""
    for _ in range(TRIES):
        before = _state(path)
        for suffix in ("", *BESIDE):
            source, target = path.with_name(path.name + suffix), folder / (path.name + suffix)
            target.unlink(missing_ok=True)
            try:
                shutil.copyfile(source, target)
            except FileNotFoundError:
                continue
        if _state(path) == before:
            return folder / path.name
    raise RefusedError(f"{shown(path)} is being written", hint="stop Last Light, then import again")


def _state(path: Path) -> list[tuple[int, int]]:
    """Size and time of the database and of what is beside it."""
    found: list[tuple[int, int]] = []
    for suffix in ("", *BESIDE):
        try:
            status = path.with_name(path.name + suffix).stat()
        except FileNotFoundError:
            found.append((0, 0))
        else:
            found.append((status.st_size, status.st_mtime_ns))
    return found


def _check(tables: Tables, path: Path) -> None:
    known = set(tables.names())
    for table, names in SCHEMA.items():
        if table not in known:
            raise _refused(path, f"it has no table {table}")
        missing = set(names.split()) - set(tables.columns(table))
        if missing:
            raise _refused(path, f"{table} has no column {min(missing)}")


def _refused(path: Path, reason: str) -> RefusedError:
    return RefusedError(
        f"{shown(path)} is not a database of Last Light: {reason}",
        hint="its name there is lastlight.db, in the state directory",
    )
