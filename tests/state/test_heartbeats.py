"""A worker's heartbeat is in the database and leaves no line in the ledger."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio

from nightherd.db.ledger import read_ledger
from nightherd.model.change import Applied, EndWorker, ExtendLease, RegisterWorker
from nightherd.model.worker import WorkerStatus
from nightherd.state.agreement import differences
from nightherd.state.directory import StateDirectory
from nightherd.state.reader import SqliteReader
from nightherd.testing.determinism import START
from nightherd.testing.state_values import BEGINNING, worker
from state.stores import contents, open_store, replayed

LATER = BEGINNING + timedelta(seconds=10)


def test_heartbeats_extend_the_lease_and_leave_no_line(directory: StateDirectory) -> None:
    one = worker("one")

    async def main() -> None:
        async with open_store(directory) as store:
            await store.apply([RegisterWorker(worker=one)])
            for deadline in range(100, 150):
                beat = ExtendLease(worker_id=one.id, deadline=float(deadline), at=LATER)
                (answer,) = await store.apply([beat])
                assert isinstance(answer, Applied)

    anyio.run(main)

    assert [line.kind for line in read_ledger(directory.ledger)] == ["RegisterWorker"]
    reader = SqliteReader(directory.root)
    (found,) = reader.live_workers()
    reader.close()
    assert (found.deadline, found.heartbeat_at) == (149.0, LATER)


def test_the_ledger_still_gives_every_row_again(directory: StateDirectory, tmp_path: Path) -> None:
    staying, leaving = worker("one"), worker("two")

    async def main() -> None:
        async with open_store(directory) as store:
            for one in (staying, leaving):
                await store.apply([RegisterWorker(worker=one)])
                await store.apply([ExtendLease(worker_id=one.id, deadline=500.0, at=LATER)])
            end = EndWorker(worker_id=leaving.id, status=WorkerStatus.LEFT, at=LATER)
            await store.apply([end])

    anyio.run(main)

    assert differences(directory.root, at=START) == []
    assert replayed(directory, tmp_path / "again.db") == contents(directory.database)
    ended = list(read_ledger(directory.ledger))[-1].rows[0].row
    assert (ended["status"], ended["deadline"]) == ("left", 500.0)
