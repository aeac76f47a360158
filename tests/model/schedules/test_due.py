"""When schedules are due: the same instants for everybody, whatever clocks, zones and restarts do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.schedules.clock_jump import Reading, describe_jump, jump_between
from nightherd.model.schedules.due import (
    GRACE,
    MISSED,
    MOST_AT_ONCE,
    SUPERSEDED,
    Floor,
    next_due,
    next_slot,
    parse_rule,
    review,
    spread,
    upcoming,
)
from nightherd.model.schedules.rule import CatchUp, Cron, Interval, Rule, Schedule

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOURLY = Interval(every=timedelta(hours=1))
ZURICH = "Europe/Zurich"

instants = st.integers(1_700_000_000_000_000, 1_900_000_000_000_000).map(
    lambda us: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)
)
intervals = st.integers(1, 10**7).map(lambda s: Interval(every=timedelta(seconds=s)))
crons = st.builds(
    Cron,
    expression=st.sampled_from(
        ["* * * * *", "30 2 * * *", "0 3 * * *", "*/7 1-3 * * *", "15,45 2 * * 0", "0 0 29 2 *",
         "5 4 1 * *", "30 30 2 * * *", "0 9 * * 1-5"]
    ),
    timezone=st.sampled_from(["UTC", ZURICH, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)  # fmt: skip
rules: st.SearchStrategy[Rule] = st.one_of(intervals, crons)


def schedule(rule: Rule, catch_up: CatchUp = CatchUp.NONE, jitter: int = 0) -> Schedule:
    return Schedule(name="x", rule=rule, catch_up=catch_up, jitter=timedelta(seconds=jitter))


@given(rule=rules, after=instants)
@settings(max_examples=150, deadline=None)
def test_the_next_instant_is_later_and_nothing_lies_between(rule: Rule, after: datetime) -> None:
    due = next_due(rule, after)

    assert due is not None
    assert due > after
    assert due.tzinfo is UTC
    middle = after + (due - after) / 2
    assert next_due(rule, middle) == due
    assert next_due(rule, due - timedelta(microseconds=1)) == due


@given(rule=rules, after=instants, jitter=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_jitter_is_the_same_every_time_and_never_reaches_the_next_slot(
    rule: Rule, after: datetime, jitter: int
) -> None:
    one = next_slot("a/x", schedule(rule, jitter=jitter), rule, after)

    assert one is not None
    assert one == next_slot("a/x", schedule(rule, jitter=jitter), rule, after)
    following = next_due(rule, one.instant)
    assert following is not None
    assert one.instant <= one.runs_at < following
    assert one.runs_at - one.instant <= timedelta(seconds=jitter)


def test_jitter_spreads_schedules_that_are_due_together() -> None:
    jitter = timedelta(minutes=10)
    runs = {spread(f"a{number}/x", HOURLY, NOON, jitter).runs_at for number in range(50)}

    assert len(runs) == 50


def test_intervals_keep_to_the_clock_however_often_something_restarts() -> None:
    every = Interval(every=timedelta(minutes=45))
    starts = [NOON + timedelta(minutes=minute) for minute in range(45)]

    assert len({next_due(every, start) for start in starts}) <= 2
    assert next_due(HOURLY, NOON) == NOON + timedelta(hours=1)
    assert next_due(HOURLY, NOON - timedelta(microseconds=1)) == NOON


@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        # 29 March 2026: 02:00 becomes 03:00. What the clocks skip comes right after the gap, once.
        ("30 2 * * *", "2026-03-29", ["01:00"]),
        ("0 3 * * *", "2026-03-29", ["01:00"]),
        ("0 1-4 * * *", "2026-03-29", ["00:00", "01:00", "02:00"]),
        # 25 October 2026: 02:00 to 03:00 is shown twice. A fixed time comes once, `*` means every instant.
        ("30 2 * * *", "2026-10-25", ["00:30"]),
        ("30 * * * *", "2026-10-25", None),
    ],
)
def test_a_fixed_time_comes_once_a_day_when_clocks_change(
    expression: str, day: str, expected: list[str] | None
) -> None:
    rule = Cron(expression=expression, timezone=ZURICH)
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(ZURICH))
    begin = midnight.astimezone(UTC) - timedelta(seconds=1)
    end = (midnight + timedelta(days=1)).astimezone(UTC)

    found = [
        due.instant
        for due in upcoming("a/x", schedule(rule), rule, begin, end - timedelta(seconds=1))
    ]

    if expected is None:
        assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(hours=1)}
        assert len(found) == 25
    else:
        assert [f"{at:%H:%M}" for at in found] == expected


def test_an_expression_that_never_matches_is_never_due() -> None:
    with pytest.raises(InvalidValueError):
        parse_rule("0 0 30 2 *", "UTC")


def test_rules_are_read_as_people_write_them() -> None:
    assert parse_rule("30m", "UTC") == Interval(every=timedelta(minutes=30))
    assert parse_rule("@daily", ZURICH) == Cron(expression="0 0 * * *", timezone=ZURICH)
    for wrong in ("200ms", "", "often", "61 * * * *", "0s"):
        with pytest.raises(InvalidValueError):
            parse_rule(wrong, "UTC")


def test_nothing_missed_means_one_job() -> None:
    found = review("a/x", schedule(HOURLY), HOURLY, NOON, NOON + timedelta(seconds=1))

    assert [(one.instant, one.reason) for one in found.verdicts] == [(NOON, None)]
    assert found.next is not None
    assert found.next.instant == NOON + timedelta(hours=1)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_what_was_missed_is_made_up_for_as_asked(catch_up: CatchUp) -> None:
    now = NOON + timedelta(hours=3, minutes=30)

    found = review("a/x", schedule(HOURLY, catch_up), HOURLY, NOON, now)

    reasons = {
        CatchUp.NONE: [MISSED, MISSED, MISSED, MISSED],
        CatchUp.ONE: [SUPERSEDED, SUPERSEDED, SUPERSEDED, None],
        CatchUp.ALL: [None, None, None, None],
    }
    assert [one.reason for one in found.verdicts] == reasons[catch_up]
    assert [one.instant for one in found.verdicts] == [NOON + timedelta(hours=n) for n in range(4)]


def test_a_restart_within_the_grace_misses_nothing() -> None:
    in_time = review("a/x", schedule(HOURLY), HOURLY, NOON, NOON + GRACE)
    too_late = review("a/x", schedule(HOURLY), HOURLY, NOON, NOON + GRACE + timedelta(seconds=1))

    assert [one.is_job for one in in_time.verdicts] == [True]
    assert [one.is_job for one in too_late.verdicts] == [False]


@pytest.mark.parametrize(
    "rule", [Interval(every=timedelta(seconds=1)), Cron(expression="* * * * * *")]
)
def test_a_month_of_missed_seconds_is_summed_up(rule: Rule) -> None:
    first = NOON - timedelta(days=30)

    found = review("a/x", schedule(rule, CatchUp.ONE), rule, first, NOON)

    assert len(found.verdicts) == MOST_AT_ONCE
    assert found.verdicts[-1].instant == NOON
    assert [one.is_job for one in found.verdicts] == [False] * (MOST_AT_ONCE - 1) + [True]
    assert "all since 2026-01-30T12:00:00Z" in (found.verdicts[0].reason or "")


@given(rule=rules, first=instants, late=st.integers(0, 10**6), catch_up=st.sampled_from(CatchUp))
@settings(max_examples=60, deadline=None)
def test_every_due_instant_has_one_verdict_and_the_next_is_still_to_come(
    rule: Rule, first: datetime, late: int, catch_up: CatchUp
) -> None:
    start = next_due(rule, first)
    assert start is not None
    now = start + timedelta(seconds=late)

    found = review("a/x", schedule(rule, catch_up, jitter=30), rule, start, now)

    instants = [one.instant for one in found.verdicts]
    assert instants == sorted(set(instants))
    assert all(start <= one <= now for one in instants)
    assert catch_up is CatchUp.ALL or sum(one.is_job for one in found.verdicts) <= 1
    assert found.next is not None
    assert not instants or found.next.instant == next_due(rule, instants[-1])
    assert catch_up is CatchUp.ALL or found.next.runs_at > now


def test_a_clock_set_back_passes_over_what_was_decided() -> None:
    decided = frozenset(NOON + timedelta(hours=n) for n in range(1, 4))

    due = next_slot("a/x", schedule(HOURLY), HOURLY, NOON, decided)

    assert due is not None
    assert due.instant == NOON + timedelta(hours=4)


def test_catching_up_with_all_leaves_out_what_is_too_much_and_says_so() -> None:
    now = NOON + timedelta(hours=720)

    found = review("a/x", schedule(HOURLY, CatchUp.ALL), HOURLY, NOON, now)

    left_out, *jobs = found.verdicts
    assert (left_out.instant, len(jobs)) == (NOON, MOST_AT_ONCE)
    assert jobs[-1].instant == now
    assert f"more than {MOST_AT_ONCE}" in (left_out.reason or "")
    assert f"{jobs[0].instant:%Y-%m-%dT%H}" in (left_out.reason or "")
    assert all(one.is_job for one in jobs)


@pytest.mark.parametrize("hours", [3, 1000])
def test_catching_up_with_all_begins_at_the_floor(hours: int) -> None:
    now = NOON + timedelta(hours=5)
    floor = Floor(at=NOON + timedelta(hours=hours, minutes=-1), reason="not seen before")

    found = review("a/x", schedule(HOURLY, CatchUp.ALL), HOURLY, NOON, now, floor)

    left_out, *jobs = found.verdicts
    assert (left_out.instant, left_out.is_job) == (NOON, False)
    assert (left_out.reason or "").startswith("not seen before")
    assert [one.instant for one in jobs] == [
        NOON + timedelta(hours=n) for n in range(hours, 6) if n <= 5
    ]
    assert found.next is not None
    assert found.next.instant == NOON + timedelta(hours=max(6, hours))


def test_clock_that_is_set_is_told_from_time_that_passes() -> None:
    before = Reading(at=NOON, since_boot=100.0)
    later = NOON + timedelta(days=30)

    slept = jump_between(before, Reading(at=later, since_boot=100.0 + 30 * 86_400))
    ahead = jump_between(before, Reading(at=later, since_boot=101.0))
    back = jump_between(before, Reading(at=NOON - timedelta(hours=1), since_boot=101.0))

    assert slept is None
    assert ahead is not None
    assert back is not None
    assert describe_jump(ahead).startswith("the clock was set forward by")
    assert describe_jump(back).startswith("the clock was set back by")
