"""A job's checkpoints are what its rows and the lines of its journal say together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.checkpoints.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.checkpoints.journal_checkpoints import (
    bookmarks,
    last_number,
    removed,
    with_removed,
)
from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, describe
from nightherd.model.journal.system import CheckpointSaved

JOB = JobId("job-2026-01-02-abc123")
AT = datetime(2026, 1, 2, tzinfo=UTC)
HEADER: dict[str, Any] = {"limits": {"turns": 7}}


def row(number: int, *, epoch: int = 1, trigger: str = "pre_turn") -> Checkpoint:
    return Checkpoint(
        id=checkpoint_id(JOB, number),
        job_id=JOB,
        number=number,
        epoch=epoch,
        seq=number * 10,
        trigger=trigger,
        status="running",
        created_at=AT,
        header=HEADER,
    )


def line(
    number: int, *, epoch: int = 1, trigger: str = "post_llm", seq: int | None = None
) -> Event:
    said = CheckpointSaved(
        number=number,
        trigger=trigger,
        seq=number * 10 if seq is None else seq,
        turn=number,
        cost_microusd=5,
    )
    return msgspec.structs.replace(describe(said), epoch=epoch, seq=number * 10 + 1, timestamp=AT)


def numbers(rows: list[Checkpoint], events: list[Event]) -> list[int]:
    return [one.number for one in bookmarks(rows, events)]


def test_lines_have_the_header_of_the_first_row_of_their_execution() -> None:
    other = replace(row(3, epoch=2), header={"limits": {"turns": 9}})

    found = bookmarks([row(1), other], [line(1), line(2), line(3, epoch=2), line(4, epoch=2)])

    assert [one.number for one in found] == [1, 2, 3, 4]
    assert [one.header["limits"]["turns"] for one in found] == [7, 7, 9, 9]
    assert (found[1].seq, found[1].turn, found[1].cost_microusd) == (20, 2, 5)
    assert (found[1].created_at, found[1].status, found[1].epoch) == (AT, "running", 1)


def test_a_row_says_more_than_a_line_of_its_number_and_a_later_line_than_an_earlier() -> None:
    stop = row(3, trigger="on_suspend")

    found = bookmarks(
        [row(1), stop], [line(2), line(2, trigger="post_tools"), line(3, trigger="post_tools")]
    )

    assert [one.trigger for one in found] == ["pre_turn", "post_tools", "on_suspend"]


def test_lines_without_a_row_that_speaks_for_them_are_gone() -> None:
    assert numbers([], [line(1), line(2)]) == []
    assert numbers([row(3, epoch=2)], [line(1), line(2), line(4, epoch=2)]) == [3, 4]


def test_lines_of_an_older_nightherd_count_by_their_rows_only() -> None:
    old = [line(1, seq=0), line(2, seq=0)]

    assert numbers([row(1)], old) == [1]
    assert last_number([row(1), row(2)], old) == 2


def test_what_was_taken_away_is_noted_in_ranges_and_left_out() -> None:
    speaking = with_removed(with_removed(row(1), {1, 2, 3}), {5})

    found = bookmarks([speaking], [line(number) for number in range(1, 7)])

    assert speaking.header["removed"] == [[1, 3], [5, 5]]
    assert removed(speaking) == {1, 2, 3, 5}
    assert [one.number for one in found] == [4, 6]
    assert [one.header for one in found] == [HEADER, HEADER]


def test_numbers_that_were_given_are_known_from_rows_and_lines() -> None:
    assert last_number([], []) == 0
    assert last_number([row(4)], [line(2), line(3)]) == 4
    assert last_number([row(1)], [line(2), line(3)]) == 3
