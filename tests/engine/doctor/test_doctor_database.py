"""A damaged database and a damaged ledger: each is found, and made again from the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from engine.doctor.ward import Ward, lines

Damage = Callable[[Path], None]


def garble_header(path: Path) -> None:
    path.write_bytes(b"not a database at all" + path.read_bytes()[21:])


def garble_everything(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * (path.stat().st_size // 256))


def garble_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:-4096] = b"\xa5" * (len(data) - 8192)
    path.write_bytes(data)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


DAMAGES: list[Damage] = [
    garble_header,
    garble_everything,
    garble_the_middle,
    cut_in_half,
    empty,
    delete,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_database_is_found_kept_and_made_again(damage: Damage, used: Ward) -> None:
    used.settle_wal()
    rows, listed = used.rows(), used.jobs()
    damage(used.database)
    damaged = used.database.read_bytes() if used.database.exists() else None
    before = used.hashes()

    found = used.doctor("--verify")
    assert found.result.code == 1
    assert "--rebuild" in found.of("database")[0]["remedy"]
    assert used.doctor("--fix").result.code == 1
    assert used.hashes() == before

    rebuilt = used.doctor("--rebuild")

    assert (rebuilt.result.code, rebuilt.all) == (0, [])
    assert (used.rows(), used.jobs()) == (rows, listed)
    kept = [Path(path).read_bytes() for path in rebuilt.data["kept_aside"] if "db." in path]
    assert kept == ([damaged] if damaged is not None else [])
    used.clean("--verify")
    assert used.run("hello") not in {job["id"] for job in listed}


def test_faults_of_many_pages_are_told_in_one_line(used: Ward) -> None:
    used.alter("CREATE TABLE padding (text TEXT)")
    for _ in range(40):
        used.alter("INSERT INTO padding VALUES (randomblob(3000))")
    used.settle_wal()
    data = bytearray(used.database.read_bytes())
    data[-20 * 4096 :] = b"\xa5" * (20 * 4096)
    used.database.write_bytes(data)

    (found,) = used.doctor().of("database")

    assert "\n" not in found["message"]
    assert found["message"].endswith(" more like it")


def test_damaged_wal_loses_nothing_that_was_acknowledged(used: Ward, tmp_path: Path) -> None:
    used.settle_wal()
    reading = apsw.Connection(str(used.database))
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM jobs").fetchall()
    used.run("hello")
    rows = used.rows()
    # While somebody reads, the WAL is not emptied: the copy is what a power cut would leave.
    copy = tmp_path / "copy"
    shutil.copytree(used.root, copy, copy_function=shutil.copy2)
    copy.chmod(0o700)
    reading.close()
    wal = copy / "nightherd.db-wal"
    wal.write_bytes(wal.read_bytes()[:64] + b"\xff" * (wal.stat().st_size - 64))
    (copy / "nightherd.db-shm").unlink()
    used.root.rename(tmp_path / "old")
    copy.rename(used.root)

    found = used.doctor()
    assert found.result.code == 1
    assert "the database ends at change" in found.of("ledger")[0]["message"]

    assert used.doctor("--fix").result.code == 0
    assert used.rows() == rows
    used.clean("--verify")


def test_row_that_points_to_nothing_is_found_and_gone_after_a_rebuild(used: Ward) -> None:
    rows = used.rows()
    used.alter(
        "INSERT INTO executions (id, job_id, epoch, worker, status, trigger_type, trigger_id,"
        " skill, started_at) VALUES ('x', 'job-none', 1, 'w', 'lost', 'api', 'y', 'z', 't')"
    )

    (found,) = used.doctor().of("database")
    assert "refers to a missing row of jobs" in found["message"]

    used.doctor("--rebuild")
    assert used.rows() == rows


def test_database_of_a_newer_nightherd_is_left_alone(used: Ward) -> None:
    used.alter("PRAGMA user_version = 99")
    before = used.hashes()

    found = used.doctor("--fix")

    assert found.result.code == 1
    assert "newer nightherd" in found.of("database")[0]["message"]
    assert used.hashes() == before


def garble_a_line(path: Path, place: int) -> bytes:
    data = path.read_bytes()
    raw = data.splitlines(keepends=True)
    raw[place] = b"{" + b"?" * (len(raw[place]) - 2) + b"\n"
    path.write_bytes(b"".join(raw))
    return b"".join(raw)


def test_damaged_line_of_the_ledger_loses_nothing_and_the_ledger_begins_anew(used: Ward) -> None:
    rows = used.rows()
    damaged = garble_a_line(used.ledger, 3)

    for found in (used.doctor(), used.doctor("--verify")):
        assert found.result.code == 1
        assert [":4" in one["message"] for one in found.of("ledger")] == [True]
    assert used.rows() == rows

    repaired = used.doctor("--fix")
    assert (repaired.result.code, used.rows()) == (0, rows)
    (kept,) = (used.root / "ledger").glob("*.corrupt-*")
    assert kept.read_bytes() == damaged
    used.clean("--verify")

    used.run("hello")
    rows = used.rows()
    used.delete_database()
    assert used.doctor("--rebuild", "--verify").result.code == 0
    assert used.rows() == rows


def test_ledger_whose_last_line_is_damaged_stops_nobody_after_mending(used: Ward) -> None:
    rows = used.rows()
    garble_a_line(used.ledger, -1)
    assert used.doctor().only("ledger")["is_fixable"]
    assert used.cli("run", "hello").code != 0

    used.doctor("--fix")

    assert used.rows()["jobs"] == rows["jobs"]
    assert used.show(used.run("hello"))["status"] == "completed"
    used.clean("--verify")


def split(ward: Ward) -> tuple[Path, Path]:
    """The ledger in two files, as after the turn of a month."""
    newer = ward.ledger
    older = newer.with_name("2026-01.jsonl")
    raw = newer.read_bytes().splitlines(keepends=True)
    half = len(raw) // 2
    older.write_bytes(b"".join(raw[:half]))
    older.chmod(0o600)
    newer.write_bytes(b"".join(raw[half:]))
    return older, newer


@pytest.mark.parametrize("which", [0, 1], ids=["first", "last"])
def test_missing_month_of_the_ledger_is_found_and_never_rebuilt_over(
    which: int, used: Ward
) -> None:
    # As after a few hundred changes: the outbox remembers only the newest.
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")
    rows = used.rows()
    split(used)[which].unlink()
    before = used.hashes()

    found = used.doctor()
    assert (found.result.code, found.checks) == (1, ["ledger"])
    assert used.cli("doctor", "--rebuild").code != 0
    assert (used.rows(), used.hashes()) == (rows, before)

    assert used.doctor("--fix").result.code == 0
    assert used.rows() == rows
    used.clean("--verify")
    used.delete_database()
    used.doctor("--rebuild")
    assert used.rows() == rows


def test_ledger_directory_that_was_deleted_is_written_again(used: Ward) -> None:
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")
    rows = used.rows()
    shutil.rmtree(used.root / "ledger")

    assert used.doctor().checks == ["directory", "ledger"]
    assert used.doctor("--fix").result.code == 0

    assert used.rows() == rows
    assert {line["kind"] for line in lines(used.ledger)} == {"Snapshot"}
    used.clean("--verify")


def test_changes_that_wait_for_the_ledger_are_no_disagreement_and_survive_a_rebuild(
    used: Ward,
) -> None:
    """Killed between the commit and the ledger: the database is one change ahead."""
    rows = used.rows()
    whole = used.ledger.read_bytes()
    used.ledger.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))

    used.clean("--verify")
    used.doctor("--rebuild")

    assert used.rows() == rows
    assert used.ledger.read_bytes() == whole


def test_damaged_database_never_becomes_a_ledger(used: Ward) -> None:
    used.settle_wal()
    garble_the_middle(used.database)
    garble_a_line(used.ledger, -1)
    before = used.hashes()

    found = used.doctor("--fix")

    assert found.result.code == 1
    assert used.hashes() == before
