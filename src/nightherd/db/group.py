"""One group of changes: one transaction, then the ledger.

The caller holds `write.lock`. A change's row images go to the outbox in its own transaction; the ledger
is written after COMMIT. So the next process after a crash finishes from the outbox what was begun, and does
it once: the change's number says whether the ledger has it already.

A change that raises is undone alone. That takes a savepoint per change, and hardly ever is there anything
to undo: so a group is tried without them first, and done over with them when something was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from nightherd.db.connection import Database, set_synchronous
from nightherd.db.ledger import Entry, Ledger, LedgerLine, read_ledger
from nightherd.db.lock import Notice
from nightherd.db.schema import Queries
from nightherd.errors import StateError, StateFileError
from nightherd.model.change import Answer, Change
from nightherd.next_step import Action, NextStep
from nightherd.ports import Probe

OUTBOX_LIMIT = 1_024
"""How many changes the outbox keeps before the ledger is synced and they may leave it."""

ROWS_AT_ONCE = 32
"""Rows that one statement adds to the outbox."""

Outcome = Answer | Exception
"""What became of one change: its answer, or what its caller gets raised."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one change: the answer, and the images of the rows it wrote, as JSON."""

    answer: Answer
    rows: str | None


class _ChangeRaisedError(Exception):
    """Something was raised while a change was carried out; what it was is its cause."""


class Tables(Protocol):
    """What a room keeps in the database: the only thing here that knows what a change means."""

    def is_durable(self, change: Change) -> bool:
        """Whether the change must survive a power cut once it is acknowledged."""

    def begin(self) -> None:
        """A transaction has begun: what is remembered of rows that others have written since is forgotten."""

    def forget(self) -> None:
        """Something was undone: nothing that is remembered of any row counts."""

    def carry_out(self, change: Change) -> Done:
        """Decide the change and write its rows, inside the transaction that is open."""

    def restore(self, line: LedgerLine) -> None:
        """Write the row images of a change that the ledger has and the database lost."""


class GroupCommit:
    """Carries out groups of changes on one database."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        ledger: Ledger,
        *,
        queries: Queries,
        now: Callable[[], str],
        probe: Probe,
        notice: Notice,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> None:
        self._database = database
        self._tables = tables
        self._ledger = ledger
        self._queries = queries
        self._now = now
        self._probe = probe
        self._notice = notice
        self._outbox_limit = outbox_limit
        self._inode = database.path.stat().st_ino
        self._is_durable: bool | None = None
        """How commits are synced now; None when it has not been set yet."""

    def run(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome]]:
        """Carry out every batch and commit them together: per change its answer or what it raised.

        A change that raises is undone alone; the rest of its own batch is then not carried out. When this
        method itself raises, nothing of the group has happened.
        """
        self._check_still_there()
        durable = any(self._tables.is_durable(change) for batch in batches for change in batch)
        if durable is not self._is_durable:
            set_synchronous(self._database, is_durable=durable)
            self._is_durable = durable
        try:
            outcomes, entries = self._commit(batches, self._carry_out)
        except _ChangeRaisedError:  # it is raised again for the caller it belongs to
            outcomes, entries = self._commit(batches, self._carry_out_alone)
        self._probe("db.after_commit")
        self._feed_ledger(entries)
        return outcomes

    def catch_up(self) -> int:
        """Inside a transaction: agree with the ledger, and give the number of the last change there is.

        After a power cut or a damaged WAL the ledger may know more than the database: what it knows was
        acknowledged once, so it is put back. A full outbox is emptied of what the ledger has on disk.
        """
        first, last = self._outbox_span()
        recorded = self._ledger.last_change()
        if recorded > last:
            last = self._put_back(last)
        elif recorded + 1 < first:
            raise StateFileError(
                f"{self._ledger.directory} ends at change {recorded}, and the database"
                f" only remembers changes from {first} on",
                path=str(self._ledger.directory),
                code="LEDGER_GAP",
                hint="restore the missing ledger files from a backup, or start a new ledger",
                next_step=NextStep(Action.REPAIR_STATE),
            )
        elif last - first >= self._outbox_limit:
            self._ledger.sync()
            self._database.execute(self._queries["outbox_clear"], (min(recorded, last - 1),))
            self._probe("outbox.cleared")
        return last

    def _commit(
        self, batches: Sequence[Sequence[Change]], carry_out: Callable[[Change], Done | Exception]
    ) -> tuple[list[list[Outcome]], list[Entry]]:
        """One transaction: what became of each change, and what the outbox has of them now."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._probe("db.begin")
            self._tables.begin()
            last, at = self.catch_up(), self._now()
            outcomes: list[list[Outcome]] = []
            entries: list[Entry] = []
            for batch in batches:
                outcomes.append([])
                for change in batch:
                    done = carry_out(change)
                    if isinstance(done, Exception):
                        outcomes[-1].append(done)
                        break
                    if done.rows is not None:
                        kind = type(change).__name__
                        number = last + len(entries) + 1
                        entries.append(Entry(change=number, at=at, kind=kind, rows=done.rows))
                    outcomes[-1].append(done.answer)
            self._add_to_outbox(entries)
            self._probe("db.before_commit")
            self._database.execute("COMMIT")
        except BaseException:
            self._tables.forget()
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return outcomes, entries

    def _carry_out(self, change: Change) -> Done:
        """Carry out one change of a group that is undone as a whole when anything is raised."""
        try:
            return self._tables.carry_out(change)
        except Exception as error:
            raise _ChangeRaisedError from error

    def _carry_out_alone(self, change: Change) -> Done | Exception:
        """Carry out one change; what it raises belongs to its own caller, and takes nothing else with it."""
        self._database.execute("SAVEPOINT change")
        try:
            done = self._tables.carry_out(change)
            self._database.execute("RELEASE change")
        except Exception as error:
            self._tables.forget()
            if not self._database.in_transaction:
                raise  # the failure has ended the whole transaction, and the group with it
            self._database.execute("ROLLBACK TO change")
            self._database.execute("RELEASE change")
            return error
        return done

    def _add_to_outbox(self, entries: Sequence[Entry]) -> None:
        """Several rows in a statement, in as few kinds of statement as halving gives."""
        place, count = 0, ROWS_AT_ONCE
        while place < len(entries):
            while count > len(entries) - place:
                count //= 2
            rows = entries[place : place + count]
            statement = self._queries["outbox_add"].rstrip(";\n") + ", (?, ?, ?, ?)" * (count - 1)
            self._database.execute(statement, [value for row in rows for value in row.values])
            place += count

    def _feed_ledger(self, entries: Sequence[Entry]) -> None:
        """Append what the ledger lacks. The changes are committed: a failure here takes nothing back."""
        try:
            recorded = self._ledger.last_change()
            if not entries or entries[0].change != recorded + 1:
                # Earlier ones did not get there, or there is nothing new: the outbox has what is missing.
                waiting = self._database.execute(self._queries["outbox_after"], (recorded,))
                entries = [_entry(row) for row in waiting]
            if entries:
                self._ledger.append(entries)
        except StateError as error:
            self._notice(f"the ledger waits, every change is safe in the database: {error.message}")
            return
        self._probe("ledger.appended")

    def _put_back(self, last: int) -> int:
        begun_at = last
        for line in read_ledger(self._ledger.directory, after=last):
            self._tables.restore(line)
            last = line.change
        # Only the number matters: the ledger has the images.
        self._database.execute(self._queries["outbox_add"], (last, self._now(), "Restored", "[]"))
        self._notice(
            f"the database had lost changes {begun_at + 1} to {last}; they were restored from the ledger"
        )
        return last

    def _outbox_span(self) -> tuple[int, int]:
        ((first, last),) = self._database.execute(self._queries["outbox_span"])
        return int(str(first)), int(str(last))

    def _check_still_there(self) -> None:
        """A deleted or replaced database file must not be written to: it would never be read."""
        path = self._database.path
        try:
            found = path.stat().st_ino
        except OSError:
            found = 0
        if found != self._inode:
            raise StateFileError(
                f"{path} was deleted or replaced while it was open",
                path=str(path),
                operation="write",
                code="ENOENT",
                hint="stop every nightherd that uses this directory, then start again",
            )


def _entry(row: Sequence[object]) -> Entry:
    change, at, kind, rows = row
    return Entry(change=int(str(change)), at=str(at), kind=str(kind), rows=str(rows))
