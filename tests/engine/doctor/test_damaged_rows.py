"""Damaged rows: named, answered from the ledger meanwhile, and repaired from it; everything else goes on."""

from __future__ import annotations

import random
import shutil
from base64 import b64encode

import apsw
import pytest

from engine.doctor.ward import Ward, lines
from soak import often

INVALID = b"caf\xff\xfe"


def damage(ward: Ward, table: str, column: str, value: bytes = INVALID) -> None:
    """Put bytes into a text of every row, past every constraint."""
    connection = apsw.Connection(str(ward.database))
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT)", (value,))
    connection.close()


PLACES = [
    ("jobs", "summary", INVALID),
    ("jobs", "status", b"complfted"),
    ("jobs", "created_at", b"2026-13-45T99:99:99.000000Z"),
    ("job_texts", "prompt", INVALID),
    ("job_texts", "inputs", b'{"a":'),
    ("sessions", "agent", INVALID),
    ("executions", "status", INVALID),
    ("agents", "status", b"idlf"),
]


@pytest.mark.parametrize(("table", "column", "value"), PLACES)
def test_damaged_row_is_shown_as_the_ledger_has_it_named_and_repaired(
    used: Ward, table: str, column: str, value: bytes
) -> None:
    jobs, rows = used.jobs(), used.rows()
    shown = {job["id"]: used.show(job["id"]) for job in jobs}
    damage(used, table, column, value)

    assert used.jobs() == jobs
    assert {job["id"]: used.show(job["id"]) for job in jobs} == shown

    found = used.doctor()
    assert found.result.code == 1
    named = [one["message"] for one in found.of("rows")]
    assert len(named) == len(rows[table])
    assert all(one.startswith(f"{table} ") and column in one for one in named)

    fixed = used.doctor("--fix")
    assert (fixed.result.code, fixed.all) == (0, [])
    assert used.rows() == rows
    kept = lines(used.root / "damaged-rows.jsonl")
    assert [one["table"] for one in kept] == [table] * len(rows[table])
    used.clean("--verify")


def test_worker_runs_a_job_whose_prompt_is_damaged_with_the_prompt_that_was_given(
    ward: Ward,
) -> None:
    ward.cli("run", "echo", "-p", "what was asked", "--detach", "--json")
    damage(ward, "job_texts", "prompt")

    done = ward.cli("worker", "--until-idle")

    assert done.code == 0, done
    (job,) = ward.jobs()
    assert (job["status"], job["summary"]) == ("completed", "what was asked")


def test_worker_repairs_a_damaged_row_that_it_has_to_change(ward: Ward) -> None:
    ward.cli("run", "echo", "-p", "asked", "--detach", "--json")
    damage(ward, "jobs", "trigger_type", INVALID)

    done = ward.cli("worker", "--until-idle")

    assert done.code == 0, done
    assert "was damaged" in done.err
    (job,) = ward.jobs()
    assert job["status"] == "completed"
    (kept,) = lines(ward.root / "damaged-rows.jsonl")
    assert (kept["table"], kept["row"]["id"]) == ("jobs", job["id"])
    assert kept["row"]["trigger_type"] == {"base64": b64encode(INVALID).decode()}
    ward.clean("--verify")


def test_list_shows_how_long_a_job_took_although_the_time_of_its_execution_is_damaged(
    used: Ward,
) -> None:
    jobs = used.jobs()
    damage(used, "executions", "started_at", b"2026-11-16T17:48:0!.921189Z")

    assert used.jobs() == jobs


def test_text_that_changed_and_is_still_text_is_found_by_verify_and_repaired(used: Ward) -> None:
    rows = used.rows()
    damage(used, "job_texts", "prompt", b"another prompt")
    assert used.doctor().result.code == 0

    found = used.doctor("--verify")
    assert [one["is_fixable"] for one in found.of("agreement")] == [True, True]

    used.doctor("--verify", "--fix")
    assert used.rows() == rows
    used.clean("--verify")


def test_damaged_row_needs_no_older_month_of_the_ledger_than_the_one_that_has_it(
    used: Ward,
) -> None:
    jobs = used.jobs()
    damage(used, "jobs", "summary")
    (used.ledger.with_name("2020-01.jsonl")).mkdir()

    assert used.jobs() == jobs


def test_damaged_row_in_a_month_of_the_ledger_that_cannot_be_read_is_left_out(used: Ward) -> None:
    damage(used, "jobs", "summary")
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")
    (used.ledger.with_name("2999-01.jsonl")).mkdir()

    listed = used.cli("jobs", "list", "--json")

    assert (listed.code, listed.data) == (0, [])


def test_row_that_the_ledger_does_not_have_either_is_named_and_takes_nothing_else_with_it(
    used: Ward,
) -> None:
    first, second = used.jobs()
    damage(used, "jobs", "status", INVALID)
    kept = [
        line
        for line in used.ledger.read_bytes().splitlines(keepends=True)
        if first["id"].encode() not in line
    ]
    used.ledger.write_bytes(b"".join(kept))
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")

    listed = used.jobs()
    assert [job["id"] for job in listed] == [second["id"]]
    shown = used.cli("jobs", "show", first["id"])
    assert shown.code == 1
    assert first["id"] in shown.err
    named = {one["message"]: one["is_fixable"] for one in used.doctor().of("rows")}
    assert [is_fixable for message, is_fixable in named.items() if first["id"] in message] == [
        False
    ]


COMMANDS = (
    ("jobs", "list", "--json"),
    ("status", "--json"),
    ("doctor", "--verify", "--json"),
    ("worker", "--until-idle"),
    ("doctor", "--fix", "--verify", "--json"),
)
UNEXPECTED = "shows where it happened"
"""What the command line says of an error that nobody has planned for."""


def test_flipped_bit_anywhere_in_the_database_crashes_no_command(used: Ward) -> None:
    used.settle_wal()
    whole = used.database.read_bytes()
    places = [at for at in range(len(whole)) if whole[at]]
    letters = [at for at in places if chr(whole[at]).isalpha() and whole[at] < 128]
    for seed in range(often(6, soak=1_000)):
        dice = random.Random(seed)
        # The highest bit of a letter makes a text that is not valid UTF-8.
        place, bit = (
            (dice.choice(letters), 7) if seed % 2 else (dice.choice(places), dice.randrange(8))
        )
        root = used.root.with_name(f"flipped-{seed}")
        shutil.copytree(used.root, root, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        ward = Ward(root, used.cli)
        ward.database.write_bytes(flipped)

        for command in COMMANDS:
            done = ward.cli("--state-dir", str(root), *command)
            assert UNEXPECTED not in done.out + done.err, (seed, place, bit, command, done)
        done = ward.cli("--state-dir", str(root), "doctor", "--rebuild", "--verify", "--json")
        assert done.code == 0, (seed, place, bit, done)
        shutil.rmtree(root)
