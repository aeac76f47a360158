"""The store as callers meet it: groups, failures of one, cancellation, closing."""

from __future__ import annotations

import threading

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from nightherd.db.ledger import read_ledger
from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Durability
from nightherd.model.change import Applied, Change, Refused
from nightherd.model.jobs.job import JobQuery
from nightherd.state.directory import StateDirectory
from nightherd.state.outbox import LedgerFeed
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import START, FakeClock
from nightherd.testing.state_values import job_id, settle, start, submit
from state.stores import open_store


class Gate:
    """A probe that holds the writer at its first transaction until it is opened, and counts commits."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.reached = threading.Event()
        self.commits = 0

    def __call__(self, point: str) -> None:
        if point == "db.begin":
            self.reached.set()
            self.is_open.wait()
        self.commits += point == "db.after_commit"


def job_numbers(directory: StateDirectory) -> list[int]:
    reader = SqliteReader(directory.root)
    numbers = [job.number for job in reader.list_jobs(JobQuery(limit=1000))]
    reader.close()
    return numbers


def test_callers_that_wait_together_share_one_commit(directory: StateDirectory) -> None:
    gate = Gate()

    async def main() -> None:
        async with open_store(directory, probe=gate) as store, anyio.create_task_group() as group:
            group.start_soon(store.apply, [submit(1)])
            await anyio.to_thread.run_sync(gate.reached.wait)
            for number in range(2, 22):
                group.start_soon(store.apply, [submit(number)])
            await anyio.wait_all_tasks_blocked()
            gate.is_open.set()

    anyio.run(main)

    assert gate.commits == 2
    assert job_numbers(directory) == list(range(21, 0, -1))


def test_failure_of_one_caller_is_not_the_others(directory: StateDirectory) -> None:
    gate = Gate()
    bad = submit(2)
    bad = replace(bad, texts=replace(bad.texts, prompt="\ud800"))
    raised: list[Exception] = []

    async def main() -> None:
        async def fail(store: SqliteStore) -> None:
            try:
                await store.apply([bad])
            except InvalidValueError as error:
                raised.append(error)

        async with open_store(directory, probe=gate) as store, anyio.create_task_group() as group:
            group.start_soon(store.apply, [submit(1)])
            await anyio.to_thread.run_sync(gate.reached.wait)
            group.start_soon(fail, store)
            group.start_soon(store.apply, [submit(3)])
            await anyio.wait_all_tasks_blocked()
            gate.is_open.set()

    anyio.run(main)

    assert len(raised) == 1
    assert gate.commits == 2
    assert job_numbers(directory) == [2, 1]
    assert [line.change for line in read_ledger(directory.ledger)] == [1, 2]


def test_caller_that_gave_up_before_its_turn_leaves_nothing(directory: StateDirectory) -> None:
    gate = Gate()

    async def main() -> None:
        async with open_store(directory, probe=gate) as store, anyio.create_task_group() as group:
            group.start_soon(store.apply, [submit(1)])
            await anyio.to_thread.run_sync(gate.reached.wait)
            with anyio.move_on_after(0.01) as scope:
                await store.apply([submit(2)])
            assert scope.cancelled_caught
            gate.is_open.set()

    anyio.run(main)

    assert job_numbers(directory) == [1]


def test_caller_that_gave_up_in_the_middle_disturbs_nobody(directory: StateDirectory) -> None:
    gate = Gate()

    async def main() -> None:
        async with open_store(directory, probe=gate) as store:
            async with anyio.create_task_group() as group:
                group.start_soon(store.apply, [submit(1)])
                await anyio.to_thread.run_sync(gate.reached.wait)
                group.cancel_scope.cancel()
            gate.is_open.set()
            (answer,) = await store.apply([submit(2)])
            assert isinstance(answer, Applied)

    anyio.run(main)

    assert job_numbers(directory) == [2, 1]


def test_closing_finishes_what_was_handed_in(directory: StateDirectory) -> None:
    async def main() -> None:
        store = SqliteStore(directory.root, FakeClock())
        async with anyio.create_task_group() as group:
            for number in range(1, 11):
                group.start_soon(store.apply, [submit(number)])
            await anyio.wait_all_tasks_blocked()
            await store.close()
            await store.close()
        with pytest.raises(RuntimeError, match="closed"):
            await store.apply([submit(11)])

    before = threading.active_count()
    anyio.run(main)

    assert len(job_numbers(directory)) == 10
    assert [one.name for one in threading.enumerate() if one.name.startswith("nightherd")] == []
    assert threading.active_count() <= before


def test_store_that_is_never_used_touches_nothing(directory: StateDirectory) -> None:
    async def main() -> None:
        store = SqliteStore(directory.root, FakeClock())
        assert tuple(await store.apply([])) == ()
        await store.close()

    anyio.run(main)

    assert not directory.database.exists()
    assert not directory.write_lock.exists()


def test_answers_are_in_the_ledger_when_they_come(directory: StateDirectory) -> None:
    async def main() -> None:
        feed = LedgerFeed(directory.ledger)
        assert list(feed.read()) == []
        async with open_store(directory) as store:
            answers = await store.apply([submit(1), submit(1), start(1), settle(1)])
            entries = list(feed.read())

            assert [type(answer) for answer in answers] == [Applied, Refused, Applied, Applied]
            kinds = [(entry.change, entry.kind) for entry in entries]
            assert kinds == [(1, "SubmitJob"), (2, "StartExecution"), (3, "SettleExecution")]
            assert all(entry.at >= START for entry in entries)
            assert [table for table, _ in entries[0].rows] == ["sessions", "jobs", "job_texts"]
            row = msgspec.json.decode(dict(entries[0].rows)["jobs"])
            assert (row["id"], row["status"], row["number"]) == (job_id(1), "pending", 1)
            assert [entry.change for entry in feed.read(after=2)] == [3]

    anyio.run(main)


def test_outbox_stays_small_and_numbers_go_on(directory: StateDirectory) -> None:
    async def main() -> None:
        for first in (1, 21):
            async with open_store(directory, outbox_limit=4) as store:
                for number in range(first, first + 20):
                    await store.apply([submit(number)])

    anyio.run(main)

    reader = SqliteReader(directory.root)
    assert len(reader.list_jobs(JobQuery(limit=100))) == 40
    assert reader._database is not None
    ((kept,),) = reader._database.execute("SELECT count(*) FROM outbox")
    reader.close()
    assert 1 <= int(str(kept)) <= 6
    assert [line.change for line in read_ledger(directory.ledger)] == list(range(1, 41))


FULL, NORMAL = 2, 1


@pytest.mark.parametrize(
    ("durability", "expected"),
    [
        (Durability.PROCESS, [NORMAL] * 5),
        (Durability.CHECKPOINT, [FULL, NORMAL, FULL, FULL, FULL]),
        (Durability.FSYNC, [FULL] * 5),
    ],
)
def test_only_what_must_survive_a_power_cut_waits_for_the_disk(
    durability: Durability, expected: list[int], directory: StateDirectory
) -> None:
    levels: list[object] = []
    store: SqliteStore

    def note_level(point: str) -> None:
        if point == "db.before_commit":
            assert store._database is not None
            levels.append(store._database.execute("PRAGMA synchronous")[0][0])

    async def main() -> None:
        nonlocal store
        store = SqliteStore(directory.root, FakeClock(), note_level, durability=durability)
        groups: list[list[Change]] = [
            [submit(1)],
            [start(1)],
            [settle(1)],
            [submit(2)],
            [start(2), settle(2)],
        ]
        for changes in groups:
            await store.apply(changes)
        await store.close()

    anyio.run(main)

    assert levels == expected


def test_number_that_cannot_be_stored_is_refused(directory: StateDirectory) -> None:
    async def main() -> None:
        async with open_store(directory) as store:
            for priority in (2**63, 2**70):
                huge = submit(1)
                huge = replace(huge, job=replace(huge.job, priority=priority))
                with pytest.raises(InvalidValueError, match="too large"):
                    await store.apply([huge])
            (answer,) = await store.apply([submit(1)])
            assert isinstance(answer, Applied)

    anyio.run(main)

    assert job_numbers(directory) == [1]
