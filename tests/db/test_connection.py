"""Connections: their settings, their modes, and every way a database file can be unusable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from components import Components
from db.databases import migrated
from nightherd.db.connection import Database, open_for_reading, open_for_writing
from nightherd.db.failure import MEANINGS, explain, translate
from nightherd.errors import StateFileError


def test_connection_for_writing_has_the_settings_it_stands_on(tmp_path: Path) -> None:
    database = open_for_writing(tmp_path / "test.db")

    settings = {
        name: database.execute(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
    }

    assert settings == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 2,
        "busy_timeout": 30_000,
    }
    database.close()


def test_database_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with migrated(tmp_path / "test.db"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}

    assert modes == {"test.db": 0o600, "test.db-wal": 0o600, "test.db-shm": 0o600}


def test_reading_what_is_not_there_creates_nothing(tmp_path: Path) -> None:
    assert open_for_reading(tmp_path / "test.db") is None
    assert open_for_reading(tmp_path / "nowhere/test.db") is None
    assert list(tmp_path.iterdir()) == []


def test_empty_file_reads_as_no_database_and_opens_as_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "test.db").touch()

    assert open_for_reading(tmp_path / "test.db") is None
    with migrated(tmp_path / "test.db") as database:
        assert database.execute("SELECT count(*) FROM jobs") == [(0,)]


def test_reader_cannot_write(tmp_path: Path) -> None:
    with migrated(tmp_path / "test.db"):
        reader = open_for_reading(tmp_path / "test.db")
        assert reader is not None
        with pytest.raises(StateFileError, match="read-only"):
            reader.execute("DELETE FROM jobs")
        reader.close()


@pytest.mark.parametrize("opener", [open_for_reading, open_for_writing])
def test_file_that_is_no_database_is_named_and_kept(
    opener: Callable[[Path], Database | None], tmp_path: Path
) -> None:
    path = tmp_path / "test.db"
    path.write_bytes(b"this was a database once\n" * 200)

    with pytest.raises(StateFileError, match="is not a database") as caught:
        opener(path)

    assert (caught.value.path, caught.value.code) == (str(path), "NOTADB")
    assert path.read_bytes() == b"this was a database once\n" * 200


def test_damaged_page_is_reported_and_the_file_kept(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    with migrated(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damaged = bytearray(path.read_bytes())
    damaged[100:4096] = b"\xff" * 3996
    path.write_bytes(damaged)

    with pytest.raises(StateFileError, match="is damaged") as caught:
        open_for_writing(path).execute("SELECT * FROM jobs")

    assert caught.value.code == "CORRUPT"
    assert path.read_bytes()[100:4096] == b"\xff" * 3996


def test_directory_in_place_of_the_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "test.db").mkdir()

    with pytest.raises(StateFileError, match=r"test\.db"):
        open_for_writing(tmp_path / "test.db")


def test_other_program_that_keeps_the_database_is_not_called_a_lock() -> None:
    error = translate(apsw.BusyError("database is locked"), "/pasture/test.db", "execute")

    assert "locked" not in error.message
    assert error.message == "another program kept /pasture/test.db in use for too long"
    assert error.hint is not None


@pytest.mark.parametrize("kind", MEANINGS, ids=lambda kind: kind.__name__)
def test_every_failure_names_file_code_and_next_step(kind: type[apsw.Error]) -> None:
    error = translate(kind("driver's words"), "/pasture/test.db", "execute")

    assert "/pasture/test.db" in error.message
    assert "driver's words" not in error.message
    assert error.code == MEANINGS[kind][0]
    assert error.hint or error.next_step


def test_refusals_of_the_operating_system_read_like_the_documented_ones() -> None:
    path = Path("/path/.nightherd")

    assert (
        explain(PermissionError(13, "x"), path)
        == "Permission denied: Cannot access '/path/.nightherd'. Check file permissions."
    )
    assert "No space left" in explain(OSError(28, "x"), path)
    assert "Read-only" in explain(OSError(30, "x"), path)


@pytest.fixture
def read_only(tmp_path: Path, components: Components) -> Iterator[Path]:
    """A directory with a database in which nothing can be written, also by root."""
    directory = tmp_path / "mounted"
    directory.mkdir()
    if os.geteuid() != 0:
        with migrated(directory / "test.db"):
            pass
        directory.chmod(0o500)
        yield directory
        directory.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        components.absent("mount", "allow this container to mount, or run as another user")
    try:
        with migrated(directory / "test.db"):
            pass
        subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


def test_read_only_directory_can_still_be_read(read_only: Path) -> None:
    reader = open_for_reading(read_only / "test.db")

    assert reader is not None
    assert reader.execute("SELECT count(*) FROM jobs") == [(0,)]
    reader.close()


def test_read_only_directory_says_so_when_written_to(read_only: Path) -> None:
    with pytest.raises(StateFileError) as caught:
        open_for_writing(read_only / "test.db").execute("PRAGMA user_version = 9")

    assert caught.value.code in {"EROFS", "CANTOPEN"}
    assert str(read_only / "test.db") in caught.value.message
