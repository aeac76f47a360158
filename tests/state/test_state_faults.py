"""Faults of disk and files, each with its stated outcome: what is said, what survives, what works next."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.db.ledger import read_ledger
from nightherd.errors import StateDirectoryCreateError, StateFileError
from nightherd.model.change import Applied
from nightherd.model.jobs.job import JobQuery
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.rebuild import rebuild_database
from nightherd.state.soundness import Soundness
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import START, FakeClock
from nightherd.testing.state_values import submit
from state.stores import contents, open_store, replayed


async def write(directory: StateDirectory, *numbers: int) -> list[str]:
    """Submit jobs by number, each a change of its own; what an operator hears of it."""
    async with open_store(directory) as store:
        for number in numbers:
            (answer,) = await store.apply([submit(number)])
            assert isinstance(answer, Applied)
        return list(store.take_notices())


def jobs(directory: StateDirectory) -> list[int]:
    reader = SqliteReader(directory.root)
    numbers = [job.number for job in reader.list_jobs(JobQuery(limit=1000))]
    reader.close()
    return numbers


def test_full_disk_is_said_and_everything_acknowledged_survives(
    small_disk: Path, tmp_path: Path
) -> None:
    directory = init_state_directory(small_disk / ".nightherd")
    acknowledged = 0

    async def fill() -> StateFileError:
        nonlocal acknowledged
        async with open_store(directory) as store:
            for number in range(1, 1000):
                try:
                    await store.apply([submit(number, prompt="x" * 20_000)])
                except StateFileError as error:
                    return error
                acknowledged = number
        pytest.fail("the disk never filled up")

    error = anyio.run(fill)

    assert error.code in {"ENOSPC", "EIO"}
    assert str(directory.database) in error.message
    assert acknowledged > 0
    assert jobs(directory) == list(range(acknowledged, 0, -1))
    # With room again, the next writer goes on and the ledger is whole.
    roomy = init_state_directory(tmp_path / ".nightherd")
    shutil.copytree(directory.root, roomy.root, dirs_exist_ok=True)
    anyio.run(write, roomy, 5000)
    assert jobs(roomy) == list(range(acknowledged + 1, 0, -1))
    assert replayed(roomy, tmp_path / "replayed.db") == contents(roomy.database)


def test_reading_on_a_disk_without_a_byte_left_says_so_and_not_that_the_disk_failed(
    small_disk: Path,
) -> None:
    directory = init_state_directory(small_disk / ".nightherd")
    anyio.run(write, directory, 1)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * shutil.disk_usage(small_disk).free)

    with (
        closing(SqliteReader(directory.root)) as reader,
        pytest.raises(StateFileError, match="no space left") as caught,
    ):
        reader.list_jobs(JobQuery())

    assert (caught.value.code, "free some space" in str(caught.value.hint)) == ("ENOSPC", True)
    (found,) = Soundness(directory.root).database()
    assert "free some space" in str(found.remedy)
    filler.unlink()
    assert jobs(directory) == [1]


def test_rebuild_on_a_full_disk_never_replaces_a_good_database_by_a_bad_one(
    small_disk: Path,
) -> None:
    directory = init_state_directory(small_disk / ".nightherd")
    anyio.run(write, directory, 1, 2, 3)
    before, filler = contents(directory.database), small_disk / "filler"
    said = set()
    for room in range(0, 2_600_000, 200_000):
        filler.write_bytes(b"x" * max(shutil.disk_usage(small_disk).free - room, 0))
        try:
            rebuild_database(directory.root, at=START, is_there=lambda worker: False)
            said.add("done")
        except StateFileError as error:
            said.add(str(error.code))
        filler.unlink()

        assert contents(directory.database) == before
        assert not list(directory.root.glob("*.rebuilt*"))
        for kept in directory.root.glob("*.corrupt-*"):
            kept.unlink()
    assert said in ({"ENOSPC", "done"}, {"ENOSPC", "EIO", "done"})


def test_full_disk_under_a_new_state_directory_is_said_and_nothing_half_made_stays(
    small_disk: Path,
) -> None:
    filler = small_disk / "filler"
    root = small_disk / ".nightherd"
    filler.write_bytes(b"x" * shutil.disk_usage(small_disk).free)

    with pytest.raises(StateDirectoryCreateError, match="No space left") as caught:
        init_state_directory(root)

    assert caught.value.code == "ENOSPC"
    filler.unlink()
    assert (init_state_directory(root).root / ".gitignore").read_text() == "*\n"


def test_ledger_that_cannot_be_written_holds_up_no_change(
    directory: StateDirectory, tmp_path: Path
) -> None:
    anyio.run(write, directory, 1)
    ledger = directory.ledger
    aside = tmp_path / "aside"
    ledger.rename(aside)
    ledger.write_text("a file where the directory was")

    notices = anyio.run(write, directory, 2)

    assert jobs(directory) == [2, 1]
    assert [notice for notice in notices if "every change is safe in the database" in notice]
    # Put back, it catches up at the next change.
    ledger.unlink()
    aside.rename(ledger)
    assert anyio.run(write, directory, 3) == []
    assert [line.change for line in read_ledger(ledger)] == [1, 2, 3]
    assert replayed(directory, tmp_path / "replayed.db") == contents(directory.database)


def test_lost_ledger_is_refused_once_the_outbox_cannot_fill_it(directory: StateDirectory) -> None:
    anyio.run(write, directory, *range(1, 20))
    for path in directory.ledger.iterdir():
        path.unlink()

    with pytest.raises(StateFileError, match="only remembers") as caught:
        anyio.run(write, directory, 50)

    assert caught.value.code == "LEDGER_GAP"
    assert jobs(directory) == list(range(19, 0, -1))


def test_deleted_database_comes_back_from_the_ledger(
    directory: StateDirectory, tmp_path: Path
) -> None:
    anyio.run(write, directory, *range(1, 12))
    for path in directory.root.glob("nightherd.db*"):
        path.unlink()

    (notice,) = anyio.run(write, directory, 12)

    assert "changes 1 to 11; they were restored from the ledger" in notice
    assert jobs(directory) == list(range(12, 0, -1))
    assert replayed(directory, tmp_path / "replayed.db") == contents(directory.database)


def test_older_copy_of_the_database_is_brought_forward(
    directory: StateDirectory, tmp_path: Path
) -> None:
    anyio.run(write, directory, 1, 2)
    shutil.copy(directory.database, tmp_path / "copy.db")
    anyio.run(write, directory, 3, 4)
    for path in directory.root.glob("nightherd.db*"):
        path.unlink()
    shutil.copy(tmp_path / "copy.db", directory.database)

    (notice,) = anyio.run(write, directory, 5)

    assert "changes 3 to 4" in notice
    assert jobs(directory) == [5, 4, 3, 2, 1]


def test_empty_database_file_comes_back_from_the_ledger(directory: StateDirectory) -> None:
    anyio.run(write, directory, 1, 2)
    for path in directory.root.glob("nightherd.db-*"):
        path.unlink()
    directory.database.write_bytes(b"")

    with pytest.raises(StateFileError, match="the ledger beside it has its rows"):
        jobs(directory)
    (notice,) = anyio.run(write, directory, 3)

    assert "changes 1 to 2" in notice
    assert jobs(directory) == [3, 2, 1]


def test_damaged_header_is_refused_and_nothing_is_overwritten(directory: StateDirectory) -> None:
    anyio.run(write, directory, 1)
    damaged = b"garbage!" * 2 + directory.database.read_bytes()[16:]
    directory.database.write_bytes(damaged)
    before = {path.name: path.read_bytes() for path in directory.ledger.iterdir()}

    with pytest.raises(StateFileError, match="is not a database") as caught:
        anyio.run(write, directory, 2)
    with pytest.raises(StateFileError, match="is not a database"):
        jobs(directory)

    assert (caught.value.code, caught.value.path) == ("NOTADB", str(directory.database))
    assert directory.database.read_bytes() == damaged
    assert {path.name: path.read_bytes() for path in directory.ledger.iterdir()} == before


def test_changes_that_a_damaged_wal_lost_come_back_from_the_ledger(
    directory: StateDirectory, tmp_path: Path
) -> None:
    """The WAL of a killed writer, damaged in its middle: SQLite drops what comes after without a word."""
    wal = directory.root / "nightherd.db-wal"

    async def copy_while_open() -> StateDirectory:
        async with open_store(directory) as store:
            for number in range(1, 9):
                await store.apply([submit(number)])
            crashed = init_state_directory(tmp_path / "crashed/.nightherd")
            shutil.copytree(directory.root, crashed.root, dirs_exist_ok=True)
        return crashed

    crashed = anyio.run(copy_while_open)
    assert not wal.exists()
    copied = crashed.root / "nightherd.db-wal"
    damaged = bytearray(copied.read_bytes())
    middle = len(damaged) * 3 // 4
    damaged[middle : middle + 4096] = b"\xff" * 4096
    copied.write_bytes(damaged)
    (crashed.root / "nightherd.db-shm").unlink()
    assert len(jobs(crashed)) < 8

    (notice,) = anyio.run(write, crashed, 9)

    assert "they were restored from the ledger" in notice
    assert jobs(crashed) == list(range(9, 0, -1))
    assert replayed(crashed, tmp_path / "replayed.db") == contents(crashed.database)


def test_database_deleted_under_a_running_store_is_not_written_to(
    directory: StateDirectory,
) -> None:
    async def main() -> None:
        async with open_store(directory) as store:
            await store.apply([submit(1)])
            for path in directory.root.glob("nightherd.db*"):
                path.unlink()
            with pytest.raises(StateFileError, match="deleted or replaced") as caught:
                await store.apply([submit(2)])
            assert caught.value.code == "ENOENT"

    anyio.run(main)

    (notice,) = anyio.run(write, directory, 3)
    assert "changes 1 to 1" in notice
    assert jobs(directory) == [2, 1]


def test_missing_state_directory_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "nowhere", FakeClock())
        with pytest.raises(StateFileError, match="Not found") as caught:
            await store.apply([submit(1)])
        assert caught.value.code == "ENOENT"
        await store.close()

    anyio.run(main)

    assert list(tmp_path.iterdir()) == []


def test_store_recovers_when_what_stopped_it_from_opening_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / ".nightherd", FakeClock())
        with pytest.raises(StateFileError):
            await store.apply([submit(1)])
        init_state_directory(tmp_path / ".nightherd")
        (answer,) = await store.apply([submit(1)])
        assert isinstance(answer, Applied)
        await store.close()

    anyio.run(main)


def test_clock_going_backwards_moves_no_number_back(
    directory: StateDirectory, tmp_path: Path
) -> None:
    async def main() -> None:
        clock = FakeClock()
        store = SqliteStore(directory.root, clock)
        for number in range(1, 5):
            await store.apply([submit(number)])
            clock.advance(timedelta(days=-40 if number % 2 else 3))
        await store.close()

    anyio.run(main)

    assert [line.change for line in read_ledger(directory.ledger)] == [1, 2, 3, 4]
    assert jobs(directory) == [4, 3, 2, 1]
    assert replayed(directory, tmp_path / "replayed.db") == contents(directory.database)
