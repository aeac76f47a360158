"""Writing state: changes go to the writer thread, come back as answers, and are in the ledger by then."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nightherd.db.connection import Database, open_for_writing
from nightherd.db.group import OUTBOX_LIMIT, Done, GroupCommit
from nightherd.db.ledger import Ledger, LedgerLine
from nightherd.db.lock import PATIENCE_S, WriteLock
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.queries import Queries
from nightherd.db.writer import Run, Writer
from nightherd.errors import StateFileError
from nightherd.model.change import (
    Answer,
    Applied,
    Change,
    RecordRuntimeSession,
    SettleExecution,
    StartExecution,
    SubmitJob,
)
from nightherd.model.decide import decide
from nightherd.ports import Clock, Probe, no_probe
from nightherd.state.images import encode_images
from nightherd.state.layout import DATABASE, LEDGER, WRITE_LOCK
from nightherd.state.rows import SqliteRows
from nightherd.state.tables import TABLES, Image, Table, time_text

DURABLE: dict[type[Change], bool] = {
    SubmitJob: True,
    StartExecution: False,
    RecordRuntimeSession: False,
    SettleExecution: True,
}
"""Which changes survive a power cut, not only SIGKILL, once they are acknowledged (INV-DURABLE)."""

NOTICES = 100


class StateTables:
    """What changes do to the tables of one open database: reads for `decide`, writes what it says."""

    def __init__(self, database: Database, queries: Queries) -> None:
        self._database = database
        self._rows = SqliteRows(database, queries)
        self._upserts: dict[str, str] = {}

    def is_durable(self, change: Change) -> bool:
        return DURABLE[type(change)]

    def carry_out(self, change: Change) -> Done:
        answer = decide(change, self._rows)
        if not isinstance(answer, Applied):
            return Done(answer=answer, rows=None)
        tables = [self._rows.table(type(row)) for row in answer.rows]
        images = [table.image(row) for table, row in zip(tables, answer.rows, strict=True)]
        named = list(zip(tables, images, strict=True))
        # Encoded before written: text that no file could hold is refused here, not by the driver.
        text = encode_images([{"table": table.name, "row": image} for table, image in named])
        for table, image in named:
            self._write(table, image)
        return Done(answer=answer, rows=text)

    def restore(self, line: LedgerLine) -> None:
        tables = {name: row_type for row_type, name in TABLES.items()}
        for image in line.rows:
            row_type = tables.get(image.table)
            if row_type is None:
                raise StateFileError(
                    f"change {line.change} has a row of {image.table!r}, which is no table",
                    code="LEDGER_DAMAGED",
                )
            table: Table[Any] = self._rows.table(row_type)
            # Through the row and back: columns that an older line lacks get their defaults.
            row = table.row(image.row.keys(), tuple(image.row.values()))
            self._write(table, table.image(row))

    def _write(self, table: Table[Any], image: Image) -> None:
        upsert = self._upserts.get(table.name)
        if upsert is None:
            upsert = self._upserts[table.name] = table.upsert
        self._database.execute(upsert, tuple(image.values()))


class SqliteStore:
    """The state in `state_dir`, open for changes; any number of processes may have it open at once.

    The directory exists already (`init_state_directory`). The database is opened, and brought to this
    nightherd's schema, at the first `apply`.
    """

    def __init__(
        self,
        state_dir: Path,
        clock: Clock,
        probe: Probe = no_probe,
        *,
        patience_s: float = PATIENCE_S,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> None:
        self._state_dir = Path(state_dir)
        self._clock = clock
        self._probe = probe
        self._outbox_limit = outbox_limit
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._database: Database | None = None
        lock = WriteLock(
            self._state_dir / WRITE_LOCK, notice=self._notices.append, patience_s=patience_s
        )
        self._writer = Writer(lock, self._open, self._close_database)

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Carry out `changes` in order, each whole or not at all, one answer each.

        When it returns, killing any process loses none of it, and the ledger has it (INV-DURABLE). A
        change that raises is undone; those before it stand, those after it are not carried out. Cancelled
        while it waits, it may have happened or not.
        """
        if not changes:
            return ()
        return await asyncio.wrap_future(self._writer.submit(changes))

    async def close(self) -> None:
        """Finish what was handed in and give everything back; harmless the second time."""
        await asyncio.to_thread(self._writer.close)

    def take_notices(self) -> Sequence[str]:
        """What an operator should hear of since the last call: a frozen process killed, changes put back."""
        taken = []
        while self._notices:
            taken.append(self._notices.popleft())
        return taken

    def _open(self) -> Run:
        """In the writer's thread and under the lock: the database, migrated, and agreeing with the ledger."""
        queries = Queries()
        database = open_for_writing(self._state_dir / DATABASE)
        try:
            migrate(database, queries, load_migrations(), self._now())
            commit = GroupCommit(
                database,
                StateTables(database, queries),
                Ledger(self._state_dir / LEDGER, self._probe),
                queries=queries,
                now=self._now,
                probe=self._probe,
                notice=self._notices.append,
                outbox_limit=self._outbox_limit,
            )
        except BaseException:
            database.close()
            raise
        self._database = database
        return commit.run

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()

    def _now(self) -> str:
        return time_text(self._clock.now())
