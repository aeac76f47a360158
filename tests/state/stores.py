"""Stores to test with, and what their tables hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from nightherd.db.connection import Database, open_for_reading
from nightherd.ports import Probe, no_probe
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.replay import replay
from nightherd.state.store import SqliteStore
from nightherd.state.tables import PASSING, TABLES
from nightherd.testing.contracts.state import OpenState
from nightherd.testing.determinism import START, FakeClock
from nightherd.testing.memory_state import MemoryStore

Contents = dict[str, list[tuple[object, ...]]]


@asynccontextmanager
async def memory_state(_: Path) -> AsyncIterator[OpenState]:
    store = MemoryStore()
    yield OpenState(writer=store, reader=store.reader())
    await store.close()


@asynccontextmanager
async def sqlite_state(directory: Path) -> AsyncIterator[OpenState]:
    root = init_state_directory(directory / ".nightherd").root
    store, reader = SqliteStore(root, FakeClock()), SqliteReader(root)
    try:
        yield OpenState(writer=store, reader=reader)
    finally:
        reader.close()
        await store.close()


@asynccontextmanager
async def open_store(
    directory: StateDirectory, *, probe: Probe = no_probe, outbox_limit: int = 4
) -> AsyncIterator[SqliteStore]:
    """A store that empties its outbox often, so that tests meet that too."""
    store = SqliteStore(directory.root, FakeClock(), probe, outbox_limit=outbox_limit)
    try:
        yield store
    finally:
        await store.close()


StateFactory = Callable[[Path], AbstractAsyncContextManager[OpenState]]
STATES: dict[str, StateFactory] = {"memory": memory_state, "sqlite": sqlite_state}


def contents(database: Path) -> Contents:
    """Every row of every table that state lives in, column by column, but for what the ledger does not hear of."""
    opened = open_for_reading(database)
    assert opened is not None
    try:
        return {table: _rows(opened, table) for table in TABLES.values()}
    finally:
        opened.close()


def _rows(database: Database, table: str) -> list[tuple[object, ...]]:
    found = database.execute("SELECT name FROM pragma_table_info(?)", (table,))
    passing = PASSING.get(table, frozenset())
    names = ", ".join(str(name) for (name,) in found if name not in passing)
    return list(database.execute(f"SELECT {names} FROM {table} ORDER BY 1, 2"))


def replayed(directory: StateDirectory, target: Path) -> Contents:
    """The contents of a database made from the ledger alone."""
    replay(directory.ledger, target, at=START)
    return contents(target)
