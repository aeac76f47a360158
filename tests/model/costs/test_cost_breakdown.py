"""Groups and what is left over always add up to the total, and days are those of the time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.costs.breakdown import (
    CostGroup,
    CostKey,
    CostTable,
    ModelSource,
    break_down,
    read_keys,
)
from nightherd.model.costs.cell import NOTHING, Amounts, quarter_of, start_of
from nightherd.model.costs.period import MOST_DAYS, days_of, read_period
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

NOW = datetime(2026, 3, 29, 14, 7, tzinfo=UTC)
BERLIN, ADELAIDE = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Adelaide")
MODELS = {"coder": "opus", "tester": "opus"}
ZONES = [UTC, BERLIN, ADELAIDE, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kathmandu")]

names = st.none() | st.sampled_from(["a", "b", "c"])
amounts = st.builds(
    Amounts,
    usage=st.builds(
        Usage, output_tokens=st.integers(0, 9), cost_microusd=st.integers(-5, 10**9).map(MicroUsd)
    ),
    turns=st.integers(0, 3),
    jobs=st.integers(1, 3),
)
groups = st.builds(
    CostGroup,
    day=names,
    agent=st.sampled_from(["a", "b", "c"]),
    model=names,
    schedule=names,
    workflow=names,
    amounts=amounts,
)


def by_cost(cost: int, **names: str | None) -> CostGroup:
    usage = Usage(cost_microusd=MicroUsd(cost), output_tokens=cost)
    return CostGroup(**names, amounts=Amounts(usage=usage, jobs=1))  # type: ignore[arg-type]  # names only


@given(
    st.lists(groups, max_size=30),
    st.lists(st.sampled_from(CostKey), unique=True),
    st.integers(1, 9),
)
def test_rows_and_others_add_up_to_the_total(
    known: list[CostGroup], by: list[CostKey], limit: int
) -> None:
    table = CostTable(groups=known, jobs=7)
    found = break_down(table, by, lambda agent: "opus" if agent == "a" else None, limit)

    whole = sum((one.amounts for one in found.rows), found.others or NOTHING)
    expected = sum((one.amounts for one in known), NOTHING)
    assert (whole.usage, whole.turns) == (found.total.usage, found.total.turns)
    assert (found.total.usage, found.total.turns) == (expected.usage, expected.turns)
    assert found.total.jobs == 7
    assert len(found.rows) == min(found.count, limit)
    assert (found.others is None) == (found.count <= limit)


def test_the_highest_costs_are_named_and_newer_days_come_first() -> None:
    table = CostTable(
        groups=[
            by_cost(5, day="2026-03-01"),
            by_cost(1, day="2026-03-02"),
            by_cost(9, day="2026-03-03"),
            by_cost(0, day="2026-03-04"),
        ]
    )

    found = break_down(table, [CostKey.DAY], lambda agent: None, 2)

    assert [one.day for one in found.rows] == ["2026-03-03", "2026-03-01"]
    assert found.count == 3
    assert found.others is not None
    assert found.others.usage.cost_microusd == 1


def test_a_model_that_is_not_on_record_is_the_agents_own_and_marked_as_that() -> None:
    table = CostTable(
        groups=[
            by_cost(9, model="opus"),
            by_cost(5, model=None, agent="coder"),
            by_cost(3, model=None, agent="tester"),
            by_cost(1, model=None, agent="gone"),
        ]
    )

    found = break_down(table, [CostKey.MODEL], MODELS.get, 9)

    assert [(one.model, one.source, one.agent, one.amounts.tokens) for one in found.rows] == [
        ("opus", ModelSource.RECORDED, None, 9),
        ("opus", ModelSource.CONFIGURED, None, 8),
        (None, ModelSource.UNKNOWN, None, 1),
    ]


def test_keys_are_read_in_any_order_and_each_once() -> None:
    assert read_keys("model, Agent") == (CostKey.MODEL, CostKey.AGENT)
    for text in ("agent,agent", "price", "", "agent,"):
        with pytest.raises(InvalidValueError):
            read_keys(text)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, "2026-03-23T00:00+01:00"),
        ("1d", "2026-03-29T00:00+01:00"),
        ("2w", "2026-03-16T00:00+01:00"),
        ("24h", "2026-03-28T14:00+00:00"),
        ("90m", "2026-03-29T12:30+00:00"),
        ("2026-03-20", "2026-03-20T00:00+01:00"),
        ("2026-03-20T03:20", "2026-03-20T03:15+01:00"),
        ("2026-03-20T03:20Z", "2026-03-20T03:15+00:00"),
    ],
)
def test_the_beginning_of_a_period_is_written_in_many_ways(
    since: str | None, expected: str
) -> None:
    period = read_period(since, None, NOW, BERLIN)

    assert period.since == datetime.fromisoformat(expected)
    assert period.end == NOW.replace(minute=15)


@pytest.mark.parametrize(
    ("since", "until"),
    [("soon", None), ("2026-13-01", None), ("1h", "2h"), ("2026-03-30", None), ("", None)],
)
def test_a_period_that_is_none_is_refused(since: str, until: str | None) -> None:
    with pytest.raises(InvalidValueError):
        read_period(since, until, NOW, UTC)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@given(
    back=st.timedeltas(timedelta(), timedelta(days=500)),
    ahead=st.timedeltas(timedelta(minutes=15), timedelta(days=40)),
)
def test_days_follow_each_other_without_gaps(
    zone: ZoneInfo, back: timedelta, ahead: timedelta
) -> None:
    begin = NOW - back
    period = read_period(begin.isoformat(), (begin + ahead).isoformat(), NOW, zone)

    days = days_of(period, zone)

    assert (days[0].first, days[-1].until) == (period.first, period.until)
    assert all(one.until == other.first for one, other in pairwise(days))
    for day in days:
        for quarter in (day.first, day.until - 1):
            assert start_of(quarter).astimezone(zone).date().isoformat() == day.name


def test_the_day_on_which_the_clocks_change_is_shorter() -> None:
    days = days_of(read_period("2026-03-28", "2026-03-31", NOW, BERLIN), BERLIN)

    assert [(day.until - day.first) // 4 for day in days] == [24, 23, 24]


def test_too_many_days_are_refused() -> None:
    period = read_period("1990-01-01", None, NOW, UTC)

    with pytest.raises(InvalidValueError, match=f"{MOST_DAYS:,}"):
        days_of(period, UTC)


@given(st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 (bounds)
def test_an_instant_is_in_its_quarter(at: datetime) -> None:
    assert start_of(quarter_of(at)) <= at < start_of(quarter_of(at) + 1)
