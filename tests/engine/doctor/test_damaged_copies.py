"""Damage to the ledger's lines, to blobs, and a lost WAL: found, told, and repaired where that is possible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.doctor.ward import Ward, lines
from nightherd import get_job
from nightherd.files.regular import is_intact

BIG = "x" * 200_000


def flip(path: Path, place: int) -> None:
    """Flip the lowest bit of one byte."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def put_back(ward: Ward, old: bytes) -> None:
    """The database as it was before, as a lost WAL or an old copy leaves it."""
    for suffix in ("-wal", "-shm"):
        ward.database.with_name(ward.database.name + suffix).unlink(missing_ok=True)
    ward.database.write_bytes(old)


def test_every_line_of_the_ledger_has_a_checksum_of_all_before_it(used: Ward) -> None:
    for line in used.ledger.read_bytes().splitlines():
        assert "crc" in json.loads(line)
        assert is_intact(line)
        assert not is_intact(line.replace(b'"change":', b'"Change":'))


def test_damaged_line_in_the_middle_of_the_ledger_is_found_and_fixed_from_the_database(
    used: Ward,
) -> None:
    rows = used.rows()
    content = used.ledger.read_bytes()
    flip(used.ledger, content.index(b"everybody"))

    found = used.doctor()
    assert found.result.code == 1
    assert ["checksum" in one["message"] for one in found.of("ledger")] == [True]
    refused = used.cli("doctor", "--rebuild")
    assert refused.code == 1
    assert "--fix" in refused.err

    assert used.doctor("--fix").result.code == 0
    assert used.rows() == rows
    used.clean("--verify")
    assert used.cli("doctor", "--rebuild").code == 0
    assert used.rows() == rows


@pytest.fixture
def behind(used: Ward) -> tuple[Ward, str]:
    """A state directory whose database has lost a whole job that the ledger has, and the id of that job."""
    used.settle_wal()
    old = used.database.read_bytes()
    job_id = used.run("hello")
    put_back(used, old)
    return used, job_id


def knows(ward: Ward, job_id: str) -> bool:
    """Whether the database has the job."""
    return any(job_id in row for row in ward.rows()["jobs"])


@pytest.mark.parametrize(
    "command",
    [
        "jobs list",
        "jobs tail JOB --json",
        "status --json",
        "agent show hello --json",
        "session show @last",
    ],
)
def test_reader_puts_back_what_a_lost_wal_took(behind: tuple[Ward, str], command: str) -> None:
    used, job_id = behind

    shown = used.cli(*command.replace("JOB", job_id).split())

    assert shown.code == 0, shown
    assert job_id in shown.out
    assert knows(used, job_id)


def test_log_says_what_a_reader_put_back(behind: tuple[Ward, str]) -> None:
    used, job_id = behind

    assert used.show(job_id)["id"] == job_id

    assert "were restored from the ledger" in used.cli("logs").out
    used.clean("--verify")


def test_library_puts_back_what_a_lost_wal_took(behind: tuple[Ward, str]) -> None:
    used, job_id = behind

    assert get_job(used.root, job_id).id == job_id


def test_doctor_examines_a_database_that_lost_its_wal_and_changes_nothing(
    behind: tuple[Ward, str],
) -> None:
    used, job_id = behind
    rows = used.rows()

    assert any("ledger knows" in one["message"] for one in used.doctor().of("ledger"))

    assert used.rows() == rows
    assert used.doctor("--fix").result.code == 0
    assert knows(used, job_id)
    used.clean("--verify")


def test_reader_that_cannot_put_back_lost_changes_refuses_to_show_old_rows(
    behind: tuple[Ward, str],
) -> None:
    used, _ = behind
    flip(used.ledger, used.ledger.read_bytes().rindex(b"rows"))

    shown = used.cli("session", "list")

    assert (shown.code, shown.out) == (1, "")
    assert "has lost the changes" in shown.err
    assert "cannot be restored" in shown.err


def test_worker_puts_back_what_a_lost_wal_took(used: Ward) -> None:
    used.settle_wal()
    old = used.database.read_bytes()
    used.run("hello")
    rows = used.rows()["jobs"]
    put_back(used, old)

    assert used.cli("worker", "--until-idle").code == 0
    assert used.rows()["jobs"] == rows


@pytest.fixture
def big(ward: Ward) -> Ward:
    """A job whose answer is in a blob."""
    ward.run("echo", "-p", BIG)
    assert list((ward.root / "blobs").iterdir())
    return ward


@pytest.mark.parametrize("how", ["deleted", "flipped"])
def test_damaged_blob_is_found_by_verify_and_leaves_no_half_export(big: Ward, how: str) -> None:
    whole = big.cli("session", "export", "@last")
    assert whole.code == 0
    for blob in (big.root / "blobs").iterdir():
        if how == "deleted":
            blob.unlink()
        else:
            flip(blob, 100)

    (job,) = big.jobs()
    found = big.doctor("--verify")
    assert found.result.code == 1
    assert {one["job_id"] for one in found.of("journals")} == {job["id"]}
    assert all("blob" in one["message"] for one in found.of("journals"))

    exported = big.cli("session", "export", "@last")
    assert (exported.code, exported.out) == (1, "")
    assert "blob" in exported.err
    assert lines(big.journal(job["id"]))
