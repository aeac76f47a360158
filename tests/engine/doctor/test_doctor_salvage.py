"""`doctor --salvage`: a database and a ledger that are both damaged give back all that can still be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.doctor.ward import Ward, lines


def spoil(path: Path, number: int) -> None:
    """Make the line unreadable."""
    raw = path.read_bytes().splitlines(keepends=True)
    raw[number] = b"?" * 40 + b"\n"
    path.write_bytes(b"".join(raw))


def first_of(path: Path, kind: str) -> int:
    return next(at for at, line in enumerate(lines(path)) if line["kind"] == kind)


def test_way_out_of_a_damaged_ledger_is_told_by_what_else_there_is(used: Ward) -> None:
    spoil(used.ledger, 3)

    sound = used.cli("doctor", "--rebuild")
    assert (sound.code, "nightherd doctor --fix" in sound.err) == (1, True)
    refused = used.cli("doctor", "--salvage")
    assert (refused.code, "the database is sound" in refused.err) == (5, True)
    used.delete_database()
    damaged = used.cli("doctor", "--rebuild")
    assert (damaged.code, "nightherd doctor --salvage" in damaged.err) == (1, True)


@pytest.mark.parametrize("kind", ["StartExecution", "SubmitJob"])
def test_line_that_later_lines_write_again_loses_nothing(kind: str, used: Ward) -> None:
    jobs = used.jobs()
    number = first_of(used.ledger, kind)
    spoil(used.ledger, number)
    used.delete_database()

    salvaged = used.doctor("--salvage", "--verify")

    assert (salvaged.result.code, salvaged.all) == (0, [])
    (lost,) = salvaged.data["lost"]
    assert f"{used.ledger}:{number + 1}: " in lost
    assert len(list((used.root / "ledger").glob("*.corrupt-*"))) == 1
    assert used.jobs() == jobs
    assert [used.show(job["id"])["summary"] for job in jobs] == [job["summary"] for job in jobs]
    used.run("hello")
    used.clean("--verify")


def cut_beginning(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[4:]))


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage\n" * 50)


@pytest.mark.parametrize("damage", [cut_beginning, fill_with_garbage])
def test_ledger_without_its_beginning_gives_what_is_left_and_journals_the_rest(
    damage: Callable[[Path], None], used: Ward
) -> None:
    jobs = {job["id"]: job["status"] for job in used.jobs()}
    damage(used.ledger)
    used.delete_database()
    used.database.write_bytes(b"no database" * 100)

    salvaged = used.doctor("--salvage", "--verify")

    assert (salvaged.result.code, salvaged.all) == (0, [])
    assert salvaged.data["lost"]
    assert {job["id"]: job["status"] for job in used.jobs()} == jobs
    used.run("hello")
    used.clean("--verify")


@pytest.mark.parametrize("is_alike", [True, False], ids=["alike", "otherwise"])
def test_ledger_of_a_newer_nightherd_is_no_damage_to_mend(is_alike: bool, used: Ward) -> None:
    newer = used.ledger.read_bytes().replace(b'{"v":1,', b'{"v":2,')
    if not is_alike:
        newer = newer.replace(b'"rows":', b'"images":')
    used.ledger.write_bytes(newer)

    found = used.doctor("--fix", "--verify")

    assert found.result.code == 1
    told = found.of("ledger")[0]
    assert (told["is_fixable"], told["remedy"]) == (False, "upgrade nightherd")
    assert used.ledger.read_bytes() == newer
    assert used.cli("run", "hello").code == 78
    assert used.ledger.read_bytes() == newer


def test_ledger_of_a_newer_nightherd_is_not_salvaged(used: Ward) -> None:
    newer = used.ledger.read_bytes().replace(b'{"v":1,', b'{"v":2,')
    used.ledger.write_bytes(newer)
    used.delete_database()

    refused = used.cli("doctor", "--salvage")

    assert (refused.code, "upgrade nightherd" in refused.err) == (78, True)
    assert (used.ledger.read_bytes(), used.database.exists()) == (newer, False)
