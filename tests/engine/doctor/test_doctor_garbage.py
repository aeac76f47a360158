"""Journals in which nothing can be read any more: kept aside, and their jobs told of as those of lost journals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.doctor.ward import Ward, lines, running
from surfaces.drivers import Shell, execute_pending, submit_pending

GARBAGE = {
    "nulls": b"\x00" * 4000,
    "lines of nulls": (b"\x00" * 200 + b"\n") * 20,
    "text": b"this is no journal\n" * 50,
    "text and half a line": b"this is no journal\n" * 50 + b"this",
    "json of somebody else": b'{"a":1}\n[1,2]\n"text"\n',
}
garbage = pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())


def kept(ward: Ward, job_id: str) -> list[bytes]:
    """What was put aside of a job's journal."""
    return [path.read_bytes() for path in (ward.root / "jobs").glob(f"{job_id}.jsonl.corrupt-*")]


@garbage
def test_garbage_in_place_of_an_ended_jobs_journal_is_put_aside(content: bytes, used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    shown = used.show(job_id)
    used.journal(job_id).write_bytes(content)

    found = used.doctor("--verify")
    assert (found.result.code, used.journal(job_id).read_bytes()) == (1, content)

    assert used.doctor("--fix").result.code == 0
    used.clean("--verify")
    assert used.show(job_id) == shown
    told = lines(used.journal(job_id))
    assert [one["extra"]["code"] for one in told if one.get("subtype") == "warning"] == [
        "journal_lost"
    ]
    assert kept(used, job_id) == [content]


def test_job_that_waits_begins_a_journal_of_its_own_once_garbage_is_put_aside(ward: Ward) -> None:
    job_id = submit_pending(ward.root.parent)
    ward.journal(job_id).write_bytes(GARBAGE["text"])
    ward.journal(job_id).chmod(0o600)
    assert ward.doctor().only("record")["is_fixable"]

    assert ward.doctor("--fix").result.code == 0

    assert kept(ward, job_id) == [GARBAGE["text"]]
    ward.clean("--verify")
    execute_pending(ward.root.parent, job_id)
    assert ward.show(job_id)["status"] == "completed"
    assert lines(ward.journal(job_id))[0]["subtype"] == "header"
    ward.clean("--verify")


def test_job_whose_first_line_was_torn_still_tells_whose_it_is(ward: Ward) -> None:
    """The worker was killed in the middle of the header; the next one mends the journal, and goes on."""
    job_id = submit_pending(ward.root.parent)
    ward.journal(job_id).write_bytes(b'{"type":"system","v":1,"seq":1,"epoch":1,"timest')
    ward.journal(job_id).chmod(0o600)

    execute_pending(ward.root.parent, job_id)

    shown = ward.show(job_id)
    told = [json.loads(line) for line in ward.journal(job_id).read_text().splitlines()[1:]]
    assert [one["subtype"] for one in told[:3]] == ["torn_tail", "header", "execution_started"]
    ward.delete_database()
    shutil.rmtree(ward.root / "ledger")
    assert ward.doctor("--rebuild").result.code == 0
    assert ward.show(job_id)["agent"] == shown["agent"]
    ward.clean("--verify")


def test_garbage_is_left_where_a_worker_may_be_writing(
    ward: Ward, shell: Shell, fleet: Path
) -> None:
    with running(shell, "slow", fleet / "started"):
        (job,) = ward.jobs()
        ward.journal(job["id"]).write_bytes(GARBAGE["text"])

        found = ward.doctor("--fix")

        assert found.result.code == 1
        assert "a running worker may be writing it" in found.of("record")[0]["message"]
        assert kept(ward, job["id"]) == []
    assert ward.doctor("--fix").result.code == 0
    assert ward.show(job["id"])["status"] == "failed"
    ward.clean("--verify")


@pytest.mark.parametrize("content", [*GARBAGE.values(), b""], ids=[*GARBAGE.keys(), "empty"])
def test_garbage_that_no_row_knows_of_is_put_aside(content: bytes, used: Ward) -> None:
    job_id = "job-2026-01-02-abc123"
    used.journal(job_id).write_bytes(content)
    used.journal(job_id).chmod(0o600)
    found = used.doctor()
    assert (found.result.code, found.only("orphans")["is_fixable"]) == (1, True)

    assert used.doctor("--fix").result.code == 0

    assert kept(used, job_id) == [content]
    used.clean("--verify")


def test_journal_of_a_newer_nightherd_is_no_garbage(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    newer = used.journal(job_id).read_bytes().replace(b'"v":1,', b'"v":2,')
    used.journal(job_id).write_bytes(newer)

    found = used.doctor("--fix", "--verify")

    assert (found.result.code, kept(used, job_id)) == (1, [])
    assert "upgrade nightherd" in str(found.of("record")[0]["remedy"])
    assert used.journal(job_id).read_bytes() == newer
