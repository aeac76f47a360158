"""Repair of single rows: a damaged row is written again as the ledger has it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nightherd.db.connection import Database, Value, open_for_reading, open_for_writing
from nightherd.db.lock import WriteLock
from nightherd.db.schema import Queries, known_schema, schema_number
from nightherd.errors import RefusedError, StateError
from nightherd.files.atomic import append_jsonl
from nightherd.model.doctor import Finding, Level
from nightherd.model.text import utc_text
from nightherd.next_step import Action, NextStep
from nightherd.ports import Clock
from nightherd.state.directory import StateDirectory
from nightherd.state.layout import DAMAGED_ROWS
from nightherd.state.row_images import last_image
from nightherd.state.rows import decoded
from nightherd.state.table import Table
from nightherd.state.tables import TABLES, table_of

RowT = TypeVar("RowT", bound=msgspec.Struct)

PAGE = 1_000
CHECK = "rows"


class DamagedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the database with values that no row can have."""

    table: Table[Any]
    number: int
    """SQLite's own number of the row, by which it is found when its key is damaged."""
    values: Sequence[Value]
    columns: Sequence[str]
    """Those that are damaged."""

    @property
    def key(self) -> str | None:
        """Its key; None when that is damaged too."""
        return str(self.values[0]) if self.table.key not in self.columns else None


def damaged_rows(root: Path) -> Iterator[Finding]:
    """Report every row with a value that no row can have, and whether the ledger has the row."""
    directory = StateDirectory(root=root)
    try:
        database = open_for_reading(directory.database)
        if database is None:
            return
        with closing(database):
            if schema_number(database, Queries()) != known_schema():
                return  # read through a copy that is brought forward; the next writer does it for good
            for row in find_damaged(database):
                yield _finding(directory, row, is_known=_image(database, row) is not None)
    except StateError:
        return  # the check of the database says what is wrong with it


async def repair_rows(root: Path, clock: Clock, findings: Sequence[Finding]) -> None:
    """Write every damaged row that the ledger has again; what was there is kept in `damaged-rows.jsonl`."""
    directory, at = StateDirectory(root=root), clock.now()
    with (
        closing(WriteLock(directory.write_lock, notice=lambda text: None)) as lock,
        lock,
        closing(open_for_writing(directory.database)) as database,
    ):
        for row in list(find_damaged(database)):
            image = _image(database, row)
            if image is not None:
                keep_row(root, row.table.name, row.table.columns, row.values, at)
                known = row.table.row(tuple(image), tuple(image.values()))
                write_row(database, row.table, known)


def restore_row(root: Path, name: str, key: str, *, at: datetime) -> None:
    """Write one row again as the ledger has it; what was there is kept in `damaged-rows.jsonl`."""
    directory = StateDirectory(root=root)
    kind = next(kind for kind, table in TABLES.items() if table == name)
    table: Table[Any] = table_of(kind)
    with (
        closing(WriteLock(directory.write_lock, notice=lambda text: None)) as lock,
        lock,
        closing(open_for_writing(directory.database)) as database,
    ):
        image = last_image(database, name, table.key, key)
        if image is None:
            raise RefusedError(
                f"the ledger does not have {name} {key}", next_step=NextStep(Action.CHECK_STATE)
            )
        query = f"SELECT * FROM {name} WHERE {table.key} = ?1"
        for stored in database.raw(query, table.columns, (key,)):
            keep_row(root, name, table.columns, [decoded(value) for value in stored], at)
        write_row(database, table, table.row(tuple(image), tuple(image.values())))


def find_damaged(database: Database) -> Iterator[DamagedRow]:
    """Yield every damaged row of every table."""
    for kind in TABLES:
        table: Table[Any] = table_of(kind)
        query = f"SELECT rowid AS place, {', '.join(table.columns)} FROM {table.name}"
        page = f"{query} WHERE rowid > ?1 ORDER BY rowid LIMIT {PAGE}"
        last = -(2**63)
        while found := database.raw(page, ("place", *table.columns), (last,)):
            for place, *stored in found:
                last = int(str(place))
                values = [decoded(value) for value in stored]
                columns = table.damaged_columns(table.columns, values)
                if columns:
                    yield DamagedRow(table=table, number=last, values=values, columns=columns)


def write_row(database: Database, table: Table[RowT], row: RowT) -> None:
    """Write the whole row, also where an index does not agree with the damaged one."""
    values = tuple(table.image(row).values())
    database.execute("SAVEPOINT repair")
    try:
        try:
            database.execute(table.upsert, values)
        except StateError as error:
            if error.code != "CORRUPT":
                raise
            database.execute("ROLLBACK TO repair")
            database.execute(f"REINDEX {table.name}")
            database.execute(table.upsert, values)
    except BaseException:
        database.execute("ROLLBACK TO repair")
        raise
    finally:
        database.execute("RELEASE repair")


def keep_row(
    root: Path, table: str, columns: Sequence[str], values: Sequence[Value], at: datetime
) -> None:
    """Append the row as it was found to `damaged-rows.jsonl`; bytes that are no text as base64."""
    row = {
        name: {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in zip(columns, values, strict=True)
    }
    append_jsonl(root / DAMAGED_ROWS, {"at": utc_text(at), "table": table, "row": row})


def _image(database: Database, row: DamagedRow) -> dict[str, Any] | None:
    if row.key is None:
        return None
    return last_image(database, row.table.name, row.table.key, row.key)


def _finding(directory: StateDirectory, row: DamagedRow, *, is_known: bool) -> Finding:
    name = row.table.name
    which = f"{name} {row.key}" if row.key is not None else f"row {row.number} of {name}"
    columns = ", ".join(row.columns)
    return Finding(
        check=CHECK,
        level=Level.PROBLEM,
        message=f"{which} is damaged: {columns} were changed after they were written",
        path=str(directory.database),
        job_id=row.key if name in ("jobs", "job_texts") else None,
        remedy="the row is written again as the ledger has it"
        if is_known
        else "rebuild the database from the ledger",
        next_step=None if is_known else NextStep(Action.REBUILD_STATE),
        is_fixable=is_known,
    )
