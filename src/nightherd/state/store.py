"""Writing state: changes go to the writer thread, come back as answers, and are in the ledger by then."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from nightherd.db.connection import Database, Value, open_for_writing
from nightherd.db.group import OUTBOX_LIMIT, GroupCommit
from nightherd.db.ledger import Ledger
from nightherd.db.lock import PATIENCE_S, Notice, WriteLock, is_free
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries
from nightherd.db.writer import Run, Writer
from nightherd.errors import StateError
from nightherd.model.agents.agent import Durability
from nightherd.model.change import Answer, Change
from nightherd.model.text import utc_text
from nightherd.ports import Clock, Probe, no_probe
from nightherd.state.carry_out import StateTables
from nightherd.state.layout import DAMAGED_ROWS, DATABASE, LEDGER, WRITE_LOCK
from nightherd.state.row_repair import keep_row

NOTICES = 100


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
        durability: Durability = Durability.CHECKPOINT,
    ) -> None:
        self._state_dir = Path(state_dir)
        self._clock = clock
        self._probe = probe
        self._outbox_limit = outbox_limit
        self._durability = durability
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
        return await self._writer.submit(changes)

    async def catch_up(self) -> None:
        """Finish what a killed writer began: put back what the database lost, append what the ledger lacks."""
        await self._writer.submit(())

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
        self._database, commit = open_commit(
            self._state_dir,
            self._clock,
            self._probe,
            self._durability,
            self._notices.append,
            self._outbox_limit,
        )
        return commit.run

    def _close_database(self) -> None:
        try:
            if self._database is not None:
                self._database.close()
        except StateError as error:
            # Everything is committed; only the tidying up at the end failed.
            self._notices.append(error.message)


def open_commit(
    state_dir: Path,
    clock: Clock,
    probe: Probe,
    durability: Durability,
    notice: Notice,
    outbox_limit: int = OUTBOX_LIMIT,
) -> tuple[Database, GroupCommit]:
    """Open the database, migrated, and what commits changes to it. The caller holds `write.lock`."""

    def now() -> str:
        return utc_text(clock.now())

    def keep_damaged(table: str, key: str, found: Mapping[str, Value]) -> None:
        """Keep a damaged row aside that is replaced by what the ledger has, and report it."""
        keep_row(state_dir, table, tuple(found), tuple(found.values()), clock.now())
        notice(
            f"{table} {key} was damaged in the database and is restored from the ledger;"
            f" the damaged row is in {DAMAGED_ROWS}"
        )

    queries = Queries()
    database = open_for_writing(state_dir / DATABASE)
    try:
        migrate(database, queries, load_migrations(), now())
        commit = GroupCommit(
            database,
            StateTables(database, queries, durability, keep_damaged),
            Ledger(state_dir / LEDGER, probe),
            queries=queries,
            now=now,
            probe=probe,
            notice=notice,
            outbox_limit=outbox_limit,
        )
    except BaseException:
        database.close()
        raise
    return database, commit


def catch_up(state_dir: Path, clock: Clock, *, waits: bool) -> Sequence[str]:
    """Put back what the database has lost, append what the ledger lacks, and return what an operator should know.

    Both are left by a killed writer, a power cut or a lost WAL. While a live process writes, this waits for it if
    `waits` says so, and else leaves it to that process. `StateError` where nothing can be written.
    """
    path = state_dir / WRITE_LOCK
    if not waits and not is_free(path):
        return ()
    notices: list[str] = []
    with closing(WriteLock(path, notice=notices.append)) as lock, lock:
        database, commit = open_commit(
            state_dir, clock, no_probe, Durability.CHECKPOINT, notices.append
        )
        with closing(database):
            commit.run(())
    return notices
