"""Which two states of the files a diff compares: of a job, a turn, everything, and of two sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightherd.errors import NotFoundError, RefusedError, WorkspaceNotFoundError
from nightherd.model.sessions.session import Session
from nightherd.ports import ChangedPath
from nightherd.testing.state_values import job_id, start, submit
from nightherd.views.workspaces.snapshots import (
    changes_document,
    compare_sessions,
    job_changes,
    snapshot_of_session,
)
from views.records import Records


def trees(records: Records, number: int, *, turn: int | None = None, is_all: bool = False) -> str:
    compared = job_changes(
        records.reader, records.journals, job_id(number), turn=turn, is_from_base=is_all
    ).comparison
    return f"{compared.before}..{compared.after}"


@pytest.fixture
def records() -> Records:
    """A job of four turns: the second changed nothing, and a setup command ran first."""
    records = Records()
    records.job(1)
    records.snapshot(1, "t0", "start")
    records.snapshot(1, "t1", "start")
    records.say(1, "one", turn=1)
    records.snapshot(1, "t2", "turn", turn=1)
    records.say(1, "two", turn=2)
    records.say(1, "three", turn=3)
    records.snapshot(1, "t3", "turn", turn=3)
    records.say(1, "four", turn=4)
    records.snapshot(1, "t4", "turn", turn=4)
    records.snapshot(1, "t5", "end", turn=4)
    return records


@pytest.mark.parametrize(
    ("turn", "is_all", "compared"),
    [
        (None, False, "t1..t5"),
        (None, True, "t0..t5"),
        (1, False, "t1..t2"),
        (2, False, "t2..t2"),
        (3, False, "t2..t3"),
        (4, False, "t3..t5"),
    ],
)
def test_a_diff_compares_what_was_there_before_with_what_was_there_after(
    records: Records, turn: int | None, is_all: bool, compared: str
) -> None:
    assert trees(records, 1, turn=turn, is_all=is_all) == compared


def test_a_turn_of_the_next_execution_begins_with_what_that_found(records: Records) -> None:
    records.snapshot(1, "t6", "start", epoch=2)
    records.say(1, "five", turn=5, epoch=2)
    records.snapshot(1, "t7", "turn", turn=5, epoch=2)

    assert trees(records, 1, turn=5) == "t6..t7"
    assert trees(records, 1, turn=4) == "t3..t5"
    assert trees(records, 1) == "t1..t7"


def test_what_a_turn_left_that_was_cut_off_is_the_work_of_that_turn(records: Records) -> None:
    records.say(1, "five", turn=5)
    records.snapshot(1, "t6", "start", turn=5, epoch=2)
    records.say(1, "six", turn=6, epoch=2)
    records.snapshot(1, "t7", "turn", turn=6, epoch=2)
    records.snapshot(1, "t8", "start", turn=6, epoch=3)

    assert [trees(records, 1, turn=turn) for turn in (4, 5, 6)] == ["t3..t5", "t5..t6", "t6..t7"]


def test_what_a_killed_execution_left_is_the_work_of_its_job(records: Records) -> None:
    records.job(2)
    records.snapshot(2, "t0", "start")
    records.snapshot(2, "t9", "start", epoch=2)

    assert trees(records, 2) == "t0..t9"


def test_a_turn_that_the_job_does_not_have_is_not_found(records: Records) -> None:
    with pytest.raises(NotFoundError, match="has 4 turns"):
        trees(records, 1, turn=5)


def test_a_job_without_a_workspace_is_told_how_to_get_one() -> None:
    records = Records()
    records.apply(submit(1))
    with pytest.raises(RefusedError, match="has not started"):
        trees(records, 1)

    records.apply(start(1))
    with pytest.raises(WorkspaceNotFoundError, match=r"mode: shared") as refusal:
        trees(records, 1)

    assert "mode: worktree" in (refusal.value.hint or "")


def test_a_job_whose_workspace_is_being_made_has_nothing_to_compare_yet() -> None:
    records = Records()
    records.job(1)

    with pytest.raises(RefusedError, match="no snapshot"):
        trees(records, 1)


def test_files_that_no_snapshot_holds_are_named(records: Records) -> None:
    records.job(2)
    records.snapshot(2, "t0", "start")
    records.snapshot(2, "t1", "end", turn=1, left_out=("big.bin", "other.bin"))
    changes = job_changes(records.reader, records.journals, job_id(2))

    document = changes_document(
        changes,
        [ChangedPath(path="b\udcfe", status="added", added=None, removed=None)],
        b"caf\xe9",
    )

    assert document["left_out"] == ["big.bin", "other.bin"]
    assert document["left_out_count"] == 2
    assert document["files"][0]["path"] == "b\\xfe"
    assert document["patch"] == "caf\N{REPLACEMENT CHARACTER}"


def session(records: Records, number: int) -> Session:
    found = records.reader.find_session(submit(number).session.id)
    assert found is not None
    return found


def test_sessions_are_compared_by_their_last_files(records: Records) -> None:
    records.job(2)
    records.say(2, "hello", turn=1)
    records.snapshot(2, "u1", "end", turn=1)
    compared = compare_sessions(
        records.reader, records.journals, session(records, 1), session(records, 2)
    )

    assert compared is not None
    assert (compared.before, compared.after) == ("t5", "u1")


def test_a_fork_that_nothing_was_said_in_has_the_files_of_its_place(records: Records) -> None:
    original = session(records, 1)
    third = records.journals.seq_of_message(job_id(1), 6)
    fork = replace(
        original,
        id=submit(9).session.id,
        parent_session_id=original.id,
        base_job_id=job_id(1),
        base_seq=third,
        base_messages=6,
    )

    placed = snapshot_of_session(records.reader, records.journals, fork)

    assert placed is not None
    assert placed.tree == "t3"


def test_sessions_without_snapshots_have_no_files_to_compare(records: Records) -> None:
    records.apply(submit(3), start(3))
    nothing = compare_sessions(
        records.reader, records.journals, session(records, 1), session(records, 3)
    )

    assert nothing is None
