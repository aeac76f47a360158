"""Damage that nothing can mend is told for ever, and is no problem any more once somebody has noted it."""

from __future__ import annotations

import pytest

from engine.doctor.ward import Ward


def damage(used: Ward, job_id: str, line: int) -> bytes:
    """Spoil one line of a journal; what is in the file then."""
    lines = used.journal(job_id).read_bytes().splitlines(keepends=True)
    lines[line] = b"#" * (len(lines[line]) - 1) + b"\n"
    used.journal(job_id).write_bytes(b"".join(lines))
    return b"".join(lines)


def test_damage_that_was_noted_is_told_and_is_no_problem(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    left = damage(used, job_id, 3)
    assert used.doctor("--verify").result.code == 1

    noted = used.doctor("--acknowledge")
    later = used.doctor("--verify")

    assert (noted.result.code, later.result.code) == (0, 0)
    for found in (noted, later):
        told = [(one["level"], one["job_id"]) for one in found.all]
        assert told == [("warning", job_id)] * 2, "the line, and the event that it was"
        assert all("noted on " in one["message"] for one in found.all)
    assert used.journal(job_id).read_bytes() == left, "nothing is changed by it"


def test_damage_that_came_later_is_a_problem_again(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    damage(used, job_id, 3)
    used.doctor("--acknowledge")
    damage(used, job_id, 5)

    found = used.doctor("--verify")

    assert found.result.code == 1
    levels = sorted(one["level"] for one in found.all)
    assert levels == ["problem", "problem", "warning"], "a new line, and more events than before"


@pytest.mark.parametrize("content", [b"{\n", b'{"message":"\xff"}\n'])
def test_notes_that_cannot_be_read_note_nothing(used: Ward, content: bytes) -> None:
    job_id = used.jobs()[0]["id"]
    damage(used, job_id, 3)
    used.doctor("--acknowledge")
    (used.root / "noted-damage.jsonl").write_bytes(content)

    found = used.doctor("--verify")

    assert found.result.code == 1
    assert any("is not an event" in one["message"] for one in found.of("journals"))


def test_history_says_what_it_cannot_show(used: Ward) -> None:
    job = used.jobs()[0]
    damage(used, job["id"], 3)

    shown = used.cli("session", "show", job["session_id"], "--history")
    data = used.cli("session", "show", job["session_id"], "--history", "--json").data

    (lost,) = data["unreadable"]
    assert (lost["job_id"], lost["missing"], len(lost["bytes"])) == (job["id"], 1, 1)
    assert f"in the journal of {job['id']} 1 line cannot be read (at byte " in shown.err
    assert shown.code == 0
