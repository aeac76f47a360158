"""Cursors of the stream: what is written is read again, and what is none is refused."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.ids import ALPHABET, JobId
from nightherd.ports import LedgerEntry
from nightherd.views.streams.cursor import Place, StreamCursor, mark_of, parse_stream_cursor

NUMBERS = st.integers(0, 10**12)
JOBS = st.builds(
    lambda day, end: JobId(f"job-{day:%Y-%m-%d}-{end}"),
    st.dates(min_value=date(2000, 1, 1)),
    st.text(ALPHABET, min_size=6, max_size=6),
)
PLACES = st.builds(
    Place,
    change=NUMBERS,
    sent=st.none() | st.integers(0, 10**6),
    mark=st.just("") | st.text(string.hexdigits[:16], min_size=5, max_size=5),
)


@given(st.builds(StreamCursor, place=PLACES, seqs=st.dictionaries(JOBS, NUMBERS, max_size=20)))
def test_a_cursor_is_read_as_it_was_written(cursor: StreamCursor) -> None:
    assert parse_stream_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "-1", "1.", "1-xyz", "1-abc", "1,", "1,2026-01-01-aaaaaa"),
        *("1,2026-01-01-aaaaaa:x", "1,job-2026-01-01-aaaaaa:1", "1,2026-01-01-aaaaaa:1,"),
        *("9" * 16, "1" + "," * 5_000, "\u0661"),
    ],
)
def test_other_texts_are_no_cursors(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_stream_cursor(text)


def test_a_row_comes_after_a_place_or_it_was_sent() -> None:
    whole, part = Place(change=5), Place(change=5, sent=32)

    assert [whole.is_before(5, 99), whole.is_before(6, 0), whole.is_before(4, 99)] == [
        False, True, False,
    ]  # fmt: skip
    assert [part.is_before(5, 32), part.is_before(5, 33), part.is_before(4, 99)] == [
        False, True, False,
    ]  # fmt: skip
    assert (whole.read_after, part.read_after) == (5, 4)


def test_changes_of_one_number_in_two_ledgers_have_different_marks() -> None:
    first = datetime(2026, 11, 18, 12, 0, 0, 123456, tzinfo=UTC)
    marks = [
        mark_of(LedgerEntry(change=1, at=at, kind="X", rows=()))
        for at in (first, first.replace(microsecond=123457))
    ]

    assert marks[0] != marks[1]
