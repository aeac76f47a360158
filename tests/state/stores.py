"""Stores to test with, and a clock that stands still unless told to move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from nightherd.state.directory import init_state_directory
from nightherd.state.memory import MemoryStore
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.state_contract import OpenState
from nightherd.testing.state_values import BEGINNING


@dataclass
class FixedClock:
    """A clock that tests set."""

    at: datetime = field(default=BEGINNING)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def move(self, by: timedelta) -> None:
        self.at += by


@asynccontextmanager
async def memory_state(_: Path) -> AsyncIterator[OpenState]:
    store = MemoryStore()
    yield OpenState(writer=store, reader=store.reader())
    await store.close()


@asynccontextmanager
async def sqlite_state(directory: Path) -> AsyncIterator[OpenState]:
    root = init_state_directory(directory / ".nightherd").root
    store, reader = SqliteStore(root, FixedClock()), SqliteReader(root)
    yield OpenState(writer=store, reader=reader)
    reader.close()
    await store.close()


StateFactory = Callable[[Path], AbstractAsyncContextManager[OpenState]]
STATES: dict[str, StateFactory] = {"memory": memory_state, "sqlite": sqlite_state}
