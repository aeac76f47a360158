"""One group of changes: one transaction, one savepoint per change, then the ledger.

The caller holds `write.lock`. A change's row images go to the outbox in its own transaction; the ledger
is written from the outbox after COMMIT. So whoever comes after a crash finishes what was begun, and does
it once: the change's number says whether the ledger has it already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nightherd.db.connection import Database, set_synchronous
from nightherd.db.ledger import Entry, Ledger, LedgerLine, read_ledger
from nightherd.db.lock import Notice
from nightherd.db.queries import Queries
from nightherd.errors import StateError, StateFileError
from nightherd.model.change import Answer, Change
from nightherd.ports import Probe

OUTBOX_LIMIT = 256
"""How many changes the outbox keeps before the ledger is synced and they may leave it."""

Outcome = Answer | Exception
"""What became of one change: its answer, or what its caller gets raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What carrying out one change came to: the answer, and the images of the rows it wrote, as JSON."""

    answer: Answer
    rows: str | None


class Tables(Protocol):
    """What a room keeps in the database: the only thing here that knows what a change means."""

    def is_durable(self, change: Change) -> bool:
        """Whether the change must survive a power cut once it is acknowledged."""

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

    def run(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome]]:
        """Carry out every batch and commit them together: per change its answer or what it raised.

        A change that raises is undone alone; the rest of its own batch is then not carried out. When this
        method itself raises, nothing of the group has happened.
        """
        self._check_still_there()
        durable = any(self._tables.is_durable(change) for batch in batches for change in batch)
        set_synchronous(self._database, is_durable=durable)
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._probe("db.begin")
            last = self.catch_up()
            outcomes = []
            for batch in batches:
                last, answers = self._run_batch(batch, last)
                outcomes.append(answers)
            self._probe("db.before_commit")
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._probe("db.after_commit")
        self._feed_ledger()
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
                hint="ledger files are missing; put them back",
            )
        elif last - first >= self._outbox_limit:
            self._ledger.sync()
            self._database.execute(self._queries["outbox_clear"], (min(recorded, last - 1),))
            self._probe("outbox.cleared")
        return last

    def _run_batch(self, batch: Sequence[Change], last: int) -> tuple[int, list[Outcome]]:
        outcomes: list[Outcome] = []
        for change in batch:
            self._database.execute("SAVEPOINT change")
            try:
                done = self._tables.carry_out(change)
                if done.rows is not None:
                    entry = (last + 1, self._now(), type(change).__name__, done.rows)
                    self._database.execute(self._queries["outbox_add"], entry)
                self._database.execute("RELEASE change")
            except Exception as error:  # noqa: BLE001 - it belongs to this change's caller alone
                self._undo(error)
                outcomes.append(error)
                break
            last += done.rows is not None
            outcomes.append(done.answer)
        return last, outcomes

    def _undo(self, error: Exception) -> None:
        """Take back one change; a failure that ended the whole transaction ends the group."""
        if not self._database.in_transaction:
            raise error
        self._database.execute("ROLLBACK TO change")
        self._database.execute("RELEASE change")

    def _feed_ledger(self) -> None:
        """Append what the ledger lacks. The changes are committed: a failure here takes nothing back."""
        try:
            recorded = self._ledger.last_change()
            waiting = self._database.execute(self._queries["outbox_after"], (recorded,))
            if waiting:
                self._ledger.append([_entry(row) for row in waiting])
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
            f"the database had lost changes {begun_at + 1} to {last}; they are back from the ledger"
        )
        return last

    def _outbox_span(self) -> tuple[int, int]:
        ((first, last),) = self._database.execute(self._queries["outbox_span"])
        return int(str(first)), int(str(last))

    def _check_still_there(self) -> None:
        """A deleted or replaced database file must not be written to: nobody would ever read it."""
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
