"""Journals are brought to the disk by threads, and whoever asked hears how that went."""

from __future__ import annotations

import threading
from typing import cast

import anyio
import pytest

from nightherd.errors import JournalError
from nightherd.journal.syncing import SyncThreads
from nightherd.ports import Journal

PATIENCE_S = 60.0


class Disk:
    """Syncs that wait until as many are under way as are wanted at once."""

    def __init__(self, at_once: int) -> None:
        self.met = threading.Barrier(at_once)
        self.threads: set[int] = set()
        self.count = 0

    @property
    def last_seq(self) -> int:
        return 0

    def sync(self) -> None:
        self.met.wait(PATIENCE_S)
        self.threads.add(threading.get_ident())
        self.count += 1


class BrokenDisk:
    def sync(self) -> None:
        raise JournalError("the disk is gone")


def test_as_many_journals_are_synced_at_once_as_there_are_threads() -> None:
    disk = Disk(at_once=4)

    async def work() -> None:
        syncs = SyncThreads(most=4)
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(syncs.sync, cast("Journal", disk))
        syncs.close()

    anyio.run(work)

    assert disk.count == 12
    assert len(disk.threads) == 4
    assert threading.get_ident() not in disk.threads


def test_what_a_sync_raises_is_raised_to_the_one_who_waits_for_it_and_the_next_one_works() -> None:
    disk = Disk(at_once=1)

    async def work() -> None:
        syncs = SyncThreads(most=1)
        with pytest.raises(JournalError, match="the disk is gone"):
            await syncs.sync(cast("Journal", BrokenDisk()))
        await syncs.sync(cast("Journal", disk))
        syncs.close()
        syncs.close()

    anyio.run(work)

    assert disk.count == 1
