"""Salvage: rows of a damaged ledger, put together as far as they can be.

Every line holds whole rows, so a line that is lost takes only what no later line writes again.
"""

from __future__ import annotations

from nightherd.db.connection import Database
from nightherd.db.damaged_ledger import OnLost
from nightherd.db.ledger import LedgerLine
from nightherd.errors import StateError
from nightherd.state.carry_out import StateTables


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
