"""A fresh ledger: started again with every row the database has, where the old one was damaged or lost.

The lines that hold the rows are of kind `Snapshot` and numbered so that the next change follows them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from nightherd.db.connection import Database, open_for_writing
from nightherd.db.failure import unusable
from nightherd.db.ledger import SNAPSHOT, Entry, ledger_files
from nightherd.db.lock import WriteLock
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries
from nightherd.errors import RefusedError
from nightherd.files.atomic import temp_path_for
from nightherd.files.permission import keep_aside
from nightherd.model.text import utc_text
from nightherd.next_step import Action, NextStep
from nightherd.ports import Probe, no_probe
from nightherd.state.directory import StateDirectory
from nightherd.state.outbox import is_sound, outbox_span
from nightherd.state.row_images import encode_images
from nightherd.state.row_repair import find_damaged
from nightherd.state.rows import rows_by_key
from nightherd.state.table import Table
from nightherd.state.tables import TABLES, table_of

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
ROWS = 500
"""Rows on one line, unless there are fewer numbers than lines."""


def begin_ledger(root: Path, *, at: datetime, probe: Probe = no_probe) -> list[Path]:
    """Write a new ledger from the rows of the database; the paths that the old files have now.

    `RefusedError` when the database is damaged too. Killed before the end, it is simply done again.
    """
    directory = StateDirectory(root=root)
    with (
        closing(WriteLock(directory.write_lock, notice=lambda text: None)) as lock,
        lock,
        closing(open_for_writing(directory.database)) as database,
    ):
        return replace_ledger(directory, database, at, probe)


def replace_ledger(
    directory: StateDirectory, database: Database, at: datetime, probe: Probe = no_probe
) -> list[Path]:
    """The same, for the holder of `write.lock` who has the database open."""
    migrate(database, Queries(), load_migrations(), utc_text(at))
    _, last = outbox_span(database)
    if not is_sound(database) or last == 0:
        raise RefusedError(
            "the database cannot replace the ledger",
            hint="restore the ledger from a backup, then rebuild the database from it",
            next_step=NextStep(Action.REBUILD_STATE),
        )
    if next(find_damaged(database), None) is not None:
        raise RefusedError(
            "the database has damaged rows and cannot replace the ledger",
            hint="restore the ledger from a backup; to see which rows are damaged, check the state directory",
            next_step=NextStep(Action.CHECK_STATE),
        )
    old = ledger_files(directory.ledger)
    # Never an older month than the newest that was: readers take files in the order of their names.
    month = max([utc_text(at)[:7], *(path.stem for path in old)])
    target = directory.ledger / f"{month}.jsonl"
    draft = temp_path_for(target)
    _write(draft, _lines(database, last, utc_text(at)))
    probe("ledger.drafted")
    kept = []
    for path in old:
        kept.append(keep_aside(path, at))
        probe("ledger.kept")
    draft.rename(target)
    return kept


def _write(path: Path, lines: Iterator[bytes]) -> None:
    try:
        with os.fdopen(os.open(path, FLAGS, 0o600), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise unusable(error, path, "write") from error


def _lines(database: Database, last: int, at: str) -> Iterator[bytes]:
    tables: list[Table[Any]] = [table_of(kind) for kind in TABLES]
    counts = [int(str(_first(database, f"SELECT count(*) FROM {table.name}"))) for table in tables]
    size = max(ROWS, -(-sum(counts) // last))
    change = last - max(-(-sum(counts) // size), 1)
    pending: list[dict[str, object]] = []
    for table in tables:
        for row in rows_by_key(database, table):
            image = dict(zip(table.columns, row, strict=True))
            pending.append({"table": table.name, "row": image})
            if len(pending) == size:
                change += 1
                yield _line(change, at, pending)
                pending = []
    if pending or change < last:
        yield _line(last, at, pending)


def _line(change: int, at: str, images: list[dict[str, object]]) -> bytes:
    return Entry(change=change, at=at, kind=SNAPSHOT, rows=encode_images(images)).line()


def _first(database: Database, statement: str) -> object:
    return database.execute(statement)[0][0]
