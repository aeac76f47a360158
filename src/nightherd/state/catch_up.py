"""Catching up: database and ledger brought to agree for a reader, as the next writer would do it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from nightherd.db.lock import WriteLock, is_free
from nightherd.model.agents.agent import Durability
from nightherd.ports import Clock, no_probe
from nightherd.state.layout import WRITE_LOCK
from nightherd.state.store import open_commit


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
