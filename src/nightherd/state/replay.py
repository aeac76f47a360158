"""Replay: a database made again from the ledger alone, row for row what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from nightherd.db.connection import Database, open_for_writing, set_synchronous
from nightherd.db.ledger import SNAPSHOT, LedgerLine, read_ledger
from nightherd.db.ledger_check import OnLost, readable_lines
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries
from nightherd.errors import StateError, StateFileError
from nightherd.model.text import utc_text
from nightherd.state.carry_out import StateTables
from nightherd.state.run_projections import project_runs

OnChange = Callable[[int], None]
"""Called with the number of each change that is replayed."""


def replay(
    ledger: Path,
    database: Path,
    *,
    at: datetime,
    until: int | None = None,
    waiting: Sequence[LedgerLine] = (),
    on_change: OnChange = lambda change: None,
    on_lost: OnLost | None = None,
) -> int:
    """Make `database` from the files in `ledger`, up to change `until`; the last change it holds.

    `waiting` are changes that were committed and may not be in the ledger yet. The file must not exist:
    nothing is ever overwritten. When this raises, it does not exist either. The next change of the new
    database is numbered after the last one replayed. A damaged ledger is an error, unless `on_lost` is
    there to hear what had to be left out.
    """
    if database.exists():
        raise StateFileError(
            f"{database} exists already", path=str(database), operation="replay", code="EEXIST"
        )
    try:
        lines = _lines(ledger, waiting) if on_lost is None else readable_lines(ledger, on_lost)
        if until is not None:
            lines = takewhile(lambda line: line.change <= until, lines)
        return _made(lines, database, at, on_change, on_lost)
    except BaseException:
        for suffix in ("", "-wal", "-shm"):
            database.with_name(database.name + suffix).unlink(missing_ok=True)
        raise


def _made(
    lines: Iterable[LedgerLine],
    database: Path,
    at: datetime,
    on_change: OnChange,
    on_lost: OnLost | None,
) -> int:
    queries = Queries()
    with closing(open_for_writing(database)) as made:
        migrate(made, queries, load_migrations(), utc_text(at))
        tables = StateTables(made, queries)
        # Synced whole at the end; until then it is only a copy.
        set_synchronous(made, is_durable=False)
        salvage = Salvage(made, tables, on_lost) if on_lost is not None else None
        if salvage is not None:
            salvage.begin()
        restore = tables.restore if salvage is None else salvage.restore
        last, is_exact = 0, salvage is None
        made.execute("BEGIN IMMEDIATE")
        for line in lines:
            restore(line)
            last = line.change
            is_exact = is_exact and line.kind != SNAPSHOT
            on_change(last)
        if salvage is not None:
            salvage.finish()
        if not is_exact:
            project_runs(made)  # rows did not come in the order in which they were written
        if last:
            made.execute(queries["outbox_add"], (last, utc_text(at), "Restored", "[]"))
        made.execute("COMMIT")
        # Closing would do the same, but says nothing when the disk is full: rows would stay behind in the WAL.
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return last


def _lines(ledger: Path, waiting: Sequence[LedgerLine]) -> Iterator[LedgerLine]:
    """The ledger from a beginning, then what waits to follow it."""
    last = 0
    for line in read_ledger(ledger):
        if last == 0 and not line.is_beginning:
            raise StateFileError(
                f"{ledger} begins with change {line.change}, not 1",
                path=str(ledger),
                operation="replay",
                code="LEDGER_GAP",
                hint="restore the missing ledger files from a backup",
            )
        yield line
        last = line.change
    yield from (line for line in waiting if line.change > last)


class Salvage:
    """Puts lines into `made` that may not fit together. Between `begin` and `finish` rows may point to nothing."""

    def __init__(self, made: Database, tables: StateTables, on_lost: OnLost) -> None:
        self._made = made
        self._tables = tables
        self._on_lost = on_lost

    def begin(self) -> None:
        """Before the transaction: what a row points to may come later, or never."""
        self._made.execute("PRAGMA foreign_keys = OFF")

    def restore(self, line: LedgerLine) -> None:
        """Write the line's rows, or none of them and say so."""
        self._made.execute("SAVEPOINT line")
        try:
            self._tables.restore(line)
        except StateError as error:
            self._tables.forget()
            self._made.execute("ROLLBACK TO line")
            self._on_lost(f"change {line.change} ({line.kind}): {error.message}")
        self._made.execute("RELEASE line")

    def finish(self) -> None:
        """In the transaction, at its end: no row points to nothing any more.

        What may do without what it pointed to stays; what may not is left out, and said.
        """
        while found := self._made.execute("PRAGMA foreign_key_check"):
            for table, row, parent, number in found:
                column = self._column(str(table), int(str(number)))
                if self._is_needed(str(table), column):
                    self._made.execute(f"DELETE FROM {table!s} WHERE rowid = ?", (row,))
                    self._on_lost(f"a row of {table!s}: what it belongs to in {parent!s} is lost")
                else:
                    change = f"UPDATE {table!s} SET {column} = NULL WHERE rowid = ?"
                    self._made.execute(change, (row,))
        self._tables.forget()

    def _column(self, table: str, number: int) -> str:
        found = self._made.execute(
            'SELECT "from" FROM pragma_foreign_key_list(?) WHERE id = ?', (table, number)
        )
        return str(found[0][0])

    def _is_needed(self, table: str, column: str) -> bool:
        found = self._made.execute(
            'SELECT "notnull" OR pk FROM pragma_table_info(?) WHERE name = ?', (table, column)
        )
        return bool(found[0][0])
