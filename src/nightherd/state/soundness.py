"""Soundness: whether database and ledger can be relied on, each alone and both together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from nightherd.db.connection import Database, open_for_reading, sqlite_version
from nightherd.db.ledger import Ledger, ledger_files
from nightherd.db.ledger_check import check_lines
from nightherd.db.schema import Queries, known_schema, schema_number
from nightherd.errors import StateError
from nightherd.model.doctor import Finding, Level
from nightherd.next_step import Action, Advice, NextStep
from nightherd.ports import no_probe
from nightherd.state.agreement import Difference, differences
from nightherd.state.directory import StateDirectory
from nightherd.state.outbox import outbox_span
from nightherd.state.replay import OnChange

BROKEN = frozenset(("NOTADB", "CORRUPT", "EIO"))
"""What only a new database helps against."""
REBUILD = Advice("rebuild it from the ledger", NextStep(Action.REBUILD_STATE))
LEDGER_CODES = frozenset(("LEDGER_DAMAGED", "LEDGER_GAP"))


class Soundness:
    """Looks at the database and the ledger of one state directory; changes nothing."""

    def __init__(
        self, root: Path, *, version: Callable[[], tuple[str, bool]] = sqlite_version
    ) -> None:
        self._directory = StateDirectory(root=root)
        self._version = version

    def sqlite(self) -> Iterator[Finding]:
        """A SQLite that can damage databases."""
        version, is_safe = self._version()
        if not is_safe:
            yield Finding(
                check="sqlite",
                level=Level.PROBLEM,
                message=f"SQLite {version} can damage databases",
                remedy="reinstall nightherd so that its own SQLite is used",
            )

    def database(self) -> Iterator[Finding]:
        """A database that is gone, cannot be opened, or is damaged where it is looked at quickly."""
        if self._is_gone():
            yield self._unusable("database", "it is gone, and the ledger has its rows", REBUILD)
            return
        yield from self._pages("database", "quick_check")

    def whole_database(self) -> Iterator[Finding]:
        """A database that is damaged anywhere, or whose rows point to nothing."""
        yield from self._pages("whole-database", "integrity_check")

    def ledger(self) -> Iterator[Finding]:
        """A ledger with a damaged line, that lacks changes, or that knows more than the database."""
        # The database commits first: what the ledger has by now, a sound database had before.
        try:
            recorded = Ledger(self._directory.ledger, no_probe).last_change()
            check_lines(self._directory.ledger)
        except StateError as error:
            yield self._damaged_ledger("ledger", error)
            return
        try:
            span = self._span()
            # Read again: the outbox may have been emptied of what was written meanwhile.
            ledger_end = Ledger(self._directory.ledger, no_probe).last_change()
        except StateError:
            return  # the check of the database says what is wrong with it
        if span is None:
            return
        first, last = span
        if first > ledger_end + 1:
            yield Finding(
                check="ledger",
                level=Level.PROBLEM,
                message=f"the ledger ends at change {ledger_end}, the database is at {last}",
                path=str(self._directory.ledger),
                remedy="restore the missing files first if you have them; otherwise a new ledger is started from the"
                " database, and what is left of it is kept aside",
                is_fixable=True,
            )
        elif recorded > last:
            yield Finding(
                check="ledger",
                level=Level.PROBLEM,
                message=f"the database ends at change {last}, the ledger knows {recorded}",
                path=str(self._directory.database),
                remedy="the lost changes are restored from the ledger",
                is_fixable=True,
            )

    def agreement(self, now: datetime, on_change: OnChange) -> Iterator[Finding]:
        """Rows that the ledger, replayed, does not give again."""
        database = self._open()
        if isinstance(database, Finding) or database is None:
            return  # the check of the database says what is wrong with it
        try:
            found = schema_number(database, Queries())
        finally:
            database.close()
        if found < known_schema():
            yield Finding(
                check="agreement",
                level=Level.WARNING,
                message=f"the database has schema {found}; rows are compared from {known_schema()} on",
                path=str(self._directory.database),
                remedy="the next job brings it there",
            )
            return
        try:
            rows = differences(self._directory.root, at=now, on_change=on_change)
        except StateError as error:
            if error.code not in LEDGER_CODES:
                raise
            yield self._damaged_ledger("agreement", error)
            return
        for difference in rows:
            is_fixable = difference.is_in_ledger
            yield Finding(
                check="agreement",
                level=Level.PROBLEM,
                message=_difference_text(difference),
                path=str(self._directory.database),
                remedy="the row is written again as the ledger has it"
                if is_fixable
                else REBUILD.words,
                next_step=None if is_fixable else REBUILD.step,
                row=(difference.table, difference.key),
                is_fixable=is_fixable,
            )

    def _is_gone(self) -> bool:
        """Whether there is no database where the ledger says that there was one; an empty file is none."""
        try:
            if self._directory.database.stat().st_size:
                return False
        except FileNotFoundError:
            pass
        return any(path.stat().st_size for path in ledger_files(self._directory.ledger))

    def _span(self) -> tuple[int, int] | None:
        database = open_for_reading(self._directory.database)
        if database is None:
            return None
        try:
            return outbox_span(database)
        finally:
            database.close()

    def _pages(self, check: str, pragma: str) -> Iterator[Finding]:
        database = self._open(check)
        if database is None:
            return
        if isinstance(database, Finding):
            yield database
            return
        try:
            found = schema_number(database, Queries())
            if found > known_schema():
                message = f"written by a newer nightherd (schema {found})"
                yield self._unusable(check, message, Advice("upgrade nightherd"))
                return
            for (said,) in database.execute(f"PRAGMA {pragma}(10)"):
                if said != "ok":
                    yield self._unusable(check, _first_of(str(said)), REBUILD)
            for table, row, parent, _ in database.execute("PRAGMA foreign_key_check"):
                message = f"row {row!s} of {table!s} refers to a missing row of {parent!s}"
                yield self._unusable(check, message, REBUILD)
        except StateError as error:
            yield self._refused(check, error)
        finally:
            database.close()

    def _open(self, check: str = "database") -> Database | Finding | None:
        """The database, None when there is none, or what is wrong with it."""
        try:
            return open_for_reading(self._directory.database)
        except StateError as error:
            return self._refused(check, error)

    def _refused(self, check: str, error: StateError) -> Finding:
        advice = REBUILD if error.code in BROKEN else Advice(error.hint, error.next_step)
        return self._unusable(check, error.message, advice)

    def _unusable(self, check: str, message: str, advice: Advice) -> Finding:
        return Finding(
            check=check,
            level=Level.PROBLEM,
            message=f"the database is not usable: {message}",
            path=str(self._directory.database),
            remedy=advice.words,
            next_step=advice.step,
        )

    def _damaged_ledger(self, check: str, error: StateError) -> Finding:
        is_damaged = error.code in LEDGER_CODES
        return Finding(
            check=check,
            level=Level.PROBLEM,
            message=f"the ledger cannot be read: {error.message}",
            path=str(self._directory.ledger),
            remedy="restore the file from a backup first if you can; otherwise a new ledger is started from the database,"
            " which still has every row, and what is left of it is kept aside"
            if is_damaged
            else error.hint,
            next_step=None if is_damaged else error.next_step,
            is_fixable=is_damaged,
        )


def _first_of(said: str) -> str:
    """The first fault that SQLite names, and how many more; its headings say nothing to anybody."""
    faults = [line for line in said.splitlines() if line and not line.startswith("***")] or [said]
    return faults[0] + (f", and {len(faults) - 1} more like it" if len(faults) > 1 else "")


def _difference_text(difference: Difference) -> str:
    row = f"{difference.table} {difference.key}"
    if not difference.is_in_ledger:
        return f"{row} is in the database but not in the ledger"
    if not difference.is_in_database:
        return f"{row} is in the ledger, and the database does not have it"
    return f"{row} differs from the ledger: {', '.join(difference.columns)}"
