"""Visits: one lasts until the person is away too long, and the next one knows when that was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.access.visit import PATIENCE, Visit, visit_at

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
looks = st.lists(st.timedeltas(timedelta(), timedelta(hours=2)), min_size=1, max_size=30)


@given(looks)
def test_a_visit_is_everything_without_a_long_absence_and_the_one_before_ends_where_it_was_seen_last(
    pauses: list[timedelta],
) -> None:
    visit, at, first = None, BEGIN, BEGIN
    ends: list[datetime | None] = [None]
    for pause in pauses:
        if visit is not None and pause > PATIENCE:
            ends.append(at)
            first = at + pause
        elif visit is None:
            first = at + pause
        at += pause
        visit = visit_at(visit, "ada", at)

        assert visit == Visit(person="ada", began_at=first, seen_at=at, visited_at=ends[-1])


def test_a_clock_that_is_put_back_ends_no_visit() -> None:
    visit = visit_at(None, "ada", BEGIN)

    assert visit_at(visit, "ada", BEGIN - timedelta(days=1)) == visit
