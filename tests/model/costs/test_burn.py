"""Burn: rates and what they lead to, in whole numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.costs.breakdown import FamilyUse
from nightherd.model.costs.burn import Rate, amount_in, forecast, used_for
from nightherd.model.costs.cell import Amounts
from nightherd.model.limits.limits import LimitName, Scope
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

NOW = datetime(2026, 3, 1, 20, tzinfo=UTC)
MIDNIGHT = NOW + timedelta(hours=4)
HOUR = 3_600


def test_a_cap_is_reached_when_what_is_left_has_been_used_at_the_rate() -> None:
    found = forecast(60, 100, Rate(amount=40, seconds=2 * HOUR), NOW, MIDNIGHT)

    assert (found.is_reached, found.reached_at) == (False, NOW + timedelta(hours=2))
    assert found.expected == 60 + 80


def test_a_cap_that_is_not_reached_before_it_begins_anew_is_not_reached() -> None:
    found = forecast(60, 141, Rate(amount=40, seconds=2 * HOUR), NOW, MIDNIGHT)

    assert (found.reached_at, found.expected) == (None, 140)


def test_a_cap_for_ever_has_no_expected_amount_and_is_reached_some_day() -> None:
    found = forecast(0, 100, Rate(amount=1, seconds=HOUR), NOW, None)

    assert (found.reached_at, found.expected) == (NOW + timedelta(hours=100), None)
    assert forecast(0, 10**18, Rate(amount=1, seconds=HOUR), NOW, None).reached_at is None


@pytest.mark.parametrize("used", [100, 101])
def test_a_cap_that_is_reached_says_so(used: int) -> None:
    found = forecast(used, 100, Rate(amount=5, seconds=HOUR), NOW, MIDNIGHT)

    assert (found.is_reached, found.reached_at) == (True, None)


@pytest.mark.parametrize("amount", [0, -5])
def test_nothing_is_reached_where_nothing_is_used(amount: int) -> None:
    found = forecast(10, 100, Rate(amount=amount, seconds=HOUR), NOW, MIDNIGHT)

    assert (found.reached_at, found.expected) == (None, 10)


@given(
    used=st.integers(0, 10**12),
    left=st.integers(1, 10**12),
    amount=st.integers(-(10**6), 10**12),
    seconds=st.integers(0, 20_000),
    ahead=st.none() | st.integers(0, 90_000),
)
def test_a_cap_is_reached_before_its_reset_exactly_if_more_is_expected(
    used: int, left: int, amount: int, seconds: int, ahead: int | None
) -> None:
    resets = None if ahead is None else NOW + timedelta(seconds=ahead)
    rate = Rate(amount=amount, seconds=seconds)
    found = forecast(used, used + left, rate, NOW, resets)

    assert not found.is_reached
    if found.reached_at is not None:
        span = found.reached_at - NOW
        assert rate.within(span) >= left
        assert rate.within(span - timedelta(seconds=1)) < left
        assert resets is None or found.reached_at < resets
    elif resets is not None:
        assert rate.within(resets - NOW - timedelta(seconds=1)) < left
        assert found.expected is not None
        assert found.expected >= used


def use(
    agent: str, cost: int, above: tuple[str, ...] = (), schedule: str | None = None
) -> FamilyUse:
    usage = Usage(cost_microusd=MicroUsd(cost), input_tokens=cost)
    return FamilyUse(
        agent=agent, above=above, schedule=schedule, amounts=Amounts(usage=usage, turns=1, jobs=1)
    )


def test_an_agents_limit_counts_what_others_use_for_its_jobs() -> None:
    uses = [
        use("coder", 1),
        use("coder", 10, schedule="coder/nightly"),
        use("tester", 100, above=("coder",), schedule="coder/nightly"),
        use("tester", 1_000),
    ]

    def cost(scope: Scope, owner: str) -> int:
        return amount_in(used_for(scope, owner, uses), LimitName.SPEND)

    assert cost(Scope.FLEET, "") == 1_111
    assert cost(Scope.AGENT, "coder") == 111
    assert cost(Scope.AGENT, "tester") == 1_100
    assert cost(Scope.SCHEDULE, "coder/nightly") == 110
    assert cost(Scope.JOB, "coder") == 0
    counted = used_for(Scope.FLEET, "", uses)
    assert (amount_in(counted, LimitName.TURNS), amount_in(counted, LimitName.TOKENS)) == (4, 1_111)
