"""Durations, sizes and money: read exactly, written so that they can be read back, refused with a reason."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.units import (
    LARGEST,
    LONGEST,
    UNITS_MS,
    MicroUsd,
    format_duration,
    format_size,
    format_usd,
    parse_duration,
    parse_size,
    parse_usd,
    rough_duration,
    to_usd,
)
from nightherd.model.usage import NOTHING_USED, Usage

MICRO = st.integers(0, LARGEST).map(MicroUsd)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("200ms", timedelta(milliseconds=200)),
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1w", timedelta(weeks=1)),
        ("1h30m", timedelta(minutes=90)),
        (" 1H 30 M ", timedelta(minutes=90)),
        ("0.5s", timedelta(milliseconds=500)),
        ("0s", timedelta(0)),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_a_duration_is_written_so_that_it_reads_back_to_the_millisecond(
    duration: timedelta,
) -> None:
    whole = timedelta(milliseconds=round(duration / timedelta(milliseconds=1)))

    assert parse_duration(format_duration(whole)) == whole


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (40, "40ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (2_349, "2.3s"),
        (59_999, "59.9s"),
        (89_911, "1m29s"),
        (120_003, "2m"),
        (3_599_999, "59m59s"),
        (3_720_500, "1h2m"),
        (90_061_000, "1d1h"),
        (864_000_000, "10d"),
    ],
)
def test_a_duration_is_shown_to_people_in_two_units_at_most(ms: int, text: str) -> None:
    assert rough_duration(timedelta(milliseconds=ms)) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_what_is_shown_of_a_duration_is_never_more_than_it_was(duration: timedelta) -> None:
    shown = parse_duration(rough_duration(duration))

    assert shown <= duration
    assert duration - shown < max(duration / 24, timedelta(milliseconds=100))


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS_MS)))
def test_a_number_and_a_unit_is_that_many_units(count: int, unit: str) -> None:
    if count * UNITS_MS[unit] <= LONGEST / timedelta(milliseconds=1):
        assert parse_duration(f"{count}{unit}") == count * timedelta(milliseconds=UNITS_MS[unit])
    else:
        with pytest.raises(InvalidValueError, match="longer than a hundred years"):
            parse_duration(f"{count}{unit}")


@pytest.mark.parametrize(
    "text",
    ["", "5", "s", "-5s", "5 minutes", "5y", "1h 30", "inf s", "5\u017f", "\u0663s", "1.s", "9" * 400 + "s"],
)  # fmt: skip
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_duration(text)


@given(st.text() | st.from_regex(r"[0-9.]{1,6} ?[a-zA-Z\u017f\u212a]{1,2}"))
def test_no_text_makes_reading_a_quantity_fail_in_another_way(text: str) -> None:
    for parse in (parse_duration, parse_size, parse_usd):
        try:
            parse(text)
        except InvalidValueError:
            continue


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("64k", 65_536),
        ("2g", 2 << 30),
        ("1.5GiB", 3 << 29),
        ("1T", 1 << 40),
        ("10 MB", 10 << 20),
        ("0", 0),
        ("9007199254740993", 9_007_199_254_740_993),
        ("0.1k", 102),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 10**15), st.sampled_from(["", "b", "k", "m", "g", "t", "KiB", "MB"]))
def test_a_whole_number_of_units_is_exact(count: int, unit: str) -> None:
    factor = 1 << {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}[unit[:1].lower()]

    assert parse_size(f"{count}{unit}") == count * factor


@pytest.mark.parametrize("text", ["", "-1", "1x", "k", "1 2", "\uff15k", "1e3", "1" * 40, ".5k"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")],
)
def test_a_size_is_written_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@given(MICRO)
def test_money_is_written_so_that_it_reads_back_exactly(amount: MicroUsd) -> None:
    assert parse_usd(format_usd(amount).replace(",", "")) == amount
    assert parse_usd(Decimal(amount) / 1_000_000) == amount


@given(st.decimals(0, 10**9, allow_nan=False))
@example(Decimal("0.00000100000000000000000000000000001"))
@example(Decimal("1e-999999999"))
@example(Decimal("0.1234565000000000000000000000000000000001"))
def test_a_fraction_of_a_micro_dollar_is_rounded_up_and_never_lost(amount: Decimal) -> None:
    if amount.as_tuple().exponent == -999_999_999:  # too many zeros to write out as a fraction
        assert parse_usd(amount) == 1
    else:
        assert parse_usd(amount) == ceil(Fraction(amount) * 1_000_000)


@pytest.mark.parametrize(
    ("value", "micro"),
    [
        ("$0.50", 500_000),
        (" 2 ", 2_000_000),
        (3, 3_000_000),
        (0.1, 100_000),
        ("1e-7", 1),
        ("-0", 0),
    ],
)
def test_an_amount_is_read_from_text_and_number(value: str | float, micro: int) -> None:
    amount = parse_usd(value)

    assert amount == micro
    assert isinstance(amount, int)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "free",
        "-1",
        "nan",
        "inf",
        "sNaN",
        "1,5",
        "1e999999",
        "1e99999999999999",
        10**9 + 1,
        True,
    ],
)
def test_what_is_no_amount_is_refused(value: str | int) -> None:
    with pytest.raises(InvalidValueError):
        parse_usd(value)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (500_000, "$0.50"), (1_234_567_890_000, "$1,234,567.89")],
)
def test_an_amount_is_written_in_cents_or_exactly(amount: int, text: str) -> None:
    assert format_usd(MicroUsd(amount)) == text
    assert to_usd(MicroUsd(amount)) == amount / 1_000_000


USAGE = st.builds(
    Usage,
    input_tokens=st.integers(0, 10**9),
    output_tokens=st.integers(0, 10**9),
    cache_creation_input_tokens=st.integers(0, 10**9),
    cache_read_input_tokens=st.integers(0, 10**9),
    cost_microusd=MICRO,
)


@given(USAGE, USAGE)
def test_usage_adds_up_kind_by_kind(one: Usage, other: Usage) -> None:
    total = one + other

    for kind in Usage.__struct_fields__:
        assert getattr(total, kind) == getattr(one, kind) + getattr(other, kind)
    assert one + NOTHING_USED == one
    assert one + other == other + one
