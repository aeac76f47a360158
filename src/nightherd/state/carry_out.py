"""Carrying out changes on SQLite: reads what `decide` asks for, writes the rows it gives."""

from __future__ import annotations

from typing import Any

from nightherd.db.connection import Database
from nightherd.db.group import Done
from nightherd.db.ledger import LedgerLine
from nightherd.db.schema import Queries
from nightherd.errors import StateFileError
from nightherd.model.agents.agent import Durability
from nightherd.model.change import (
    Applied,
    Change,
    EndWorker,
    ExtendLease,
    RegisterWorker,
    SaveCheckpoint,
)
from nightherd.model.chat.changes import SeeMessage, SetBotState, SettlePost
from nightherd.model.decide import carry_out
from nightherd.model.jobs.changes import RecordContainer, RecordRuntimeSession, StartExecution
from nightherd.model.limits.spending import CountUsage
from nightherd.model.notifications.changes import (
    ClaimNotification,
    FollowLedger,
    SettleNotification,
)
from nightherd.model.work.changes import NoteWork, SetSourceState, StepWork
from nightherd.next_step import Action, NextStep
from nightherd.state.deciding_rows import DecidingRows, OnDamage, unnoticed
from nightherd.state.row_images import encode_images
from nightherd.state.table import Table
from nightherd.state.tables import TABLES, in_table_order

QUICK = frozenset(
    {
        StartExecution,
        RecordContainer,
        RecordRuntimeSession,
        RegisterWorker,
        ExtendLease,
        EndWorker,
        CountUsage,
        FollowLedger,
        ClaimNotification,
        SettleNotification,
        SetBotState,
        SeeMessage,
        SettlePost,
        StepWork,
        NoteWork,
        SetSourceState,
    }
)
"""Changes that survive SIGKILL but need not survive a power cut: no process of that boot is left to mind.

What was queued from the ledger is queued from it again, and a message whose end is lost is sent again: no job waits
for the disk because people are told something. A post is claimed durably, and looked for when its end is lost. What was
written to a tracker is looked for there too.

Every other change does once it is acknowledged (INV-DURABLE).
"""

UNRECORDED = frozenset({ExtendLease})
"""Changes that the ledger does not hear of. A lease is as good as the process that holds it, and is never
rebuilt; every other image of a worker's row has its lease as it was then (`tables.PASSING`)."""


class StateTables:
    """What changes do to the tables of one open database: reads for `decide`, writes what it says."""

    def __init__(
        self,
        database: Database,
        queries: Queries,
        durability: Durability = Durability.CHECKPOINT,
        on_damage: OnDamage = unnoticed,
    ) -> None:
        self._durability = durability
        self._rows = DecidingRows(database, queries, on_damage)

    def is_durable(self, change: Change) -> bool:
        match self._durability:
            case Durability.PROCESS:
                return False
            case Durability.CHECKPOINT:
                is_quick = type(change) in QUICK
                return not is_quick and not (
                    isinstance(change, SaveCheckpoint) and not change.is_synced
                )
            case Durability.FSYNC:
                return True

    def begin(self) -> None:
        self._rows.kept.begin()

    def forget(self) -> None:
        self._rows.kept.forget()

    def carry_out(self, change: Change) -> Done:
        images: list[dict[str, Any]] = []
        answer = carry_out(change, self._rows, lambda applied: self._write(applied, images))
        # One line of the ledger, whatever followed from the change: all of it is there, or nothing.
        is_recorded = bool(images) and type(change) not in UNRECORDED
        return Done(answer=answer, rows=encode_images(images) if is_recorded else None)

    def _write(self, answer: Applied, images: list[dict[str, Any]]) -> None:
        """Write the rows of one decision, and add them to what the ledger is told."""
        if not (answer.rows or answer.deleted):
            return
        kept = self._rows.kept
        drafts = [
            kept.draft(self._rows.table(type(row)), row) for row in in_table_order(answer.rows)
        ]
        # Encoded before written: text that no file could hold is refused here, not by the driver.
        written: list[dict[str, Any]] = [
            {"table": one.table.name, "row": one.image} for one in drafts
        ]
        gone = [(self._rows.table(type(row)), row) for row in answer.deleted]
        written += [
            {"table": table.name, "row": table.image(row), "deleted": True} for table, row in gone
        ]
        encode_images(written)
        for draft in drafts:
            kept.write(draft)
        for table, row in gone:
            kept.delete(table, row)
        images += written

    def restore(self, line: LedgerLine) -> None:
        kinds = {name: kind for kind, name in TABLES.items()}
        for image in line.rows:
            try:
                table: Table[Any] = self._rows.table(kinds[image.table])
                # Through the row and back: columns that an older line lacks get their defaults.
                row = table.row(tuple(image.row), tuple(image.row.values()))
                draft = None if image.deleted else self._rows.kept.draft(table, row)
            except (KeyError, TypeError, ValueError) as error:
                raise StateFileError(
                    f"change {line.change} has a row of {image.table!r} that no row can be: {error}",
                    operation="replay",
                    code="LEDGER_DAMAGED",
                    hint="restore the ledger from a backup if you can; otherwise verify the state directory",
                    next_step=NextStep(Action.VERIFY_STATE),
                ) from error
            if draft is None:
                self._rows.kept.delete(table, row)
            else:
                self._rows.kept.write(draft)
