"""Money as integer micro-dollars: exact sums, no floats, one place that turns it into text."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import NewType

from nightherd.errors import InvalidValueError

MicroUsd = NewType("MicroUsd", int)

PER_DOLLAR = 1_000_000
FREE = MicroUsd(0)
LARGEST = MicroUsd(10**15)
ONE_MICRO = Decimal("0.000001")


def parse_usd(value: str | float | int | Decimal) -> MicroUsd:
    """An amount in dollars as micro-dollars; a fraction of a micro-dollar is rounded up, never lost."""
    try:
        amount = Decimal(str(value).strip().removeprefix("$"))
    except InvalidOperation:
        raise InvalidValueError(f"{value!r} is not an amount in dollars") from None
    if not amount.is_finite():
        raise InvalidValueError(f"{value!r} is not an amount in dollars")
    if amount < 0:
        raise InvalidValueError(f"{value!r} is negative; amounts are zero or more")
    if amount > LARGEST // PER_DOLLAR:
        raise InvalidValueError(f"{value!r} is more than a thousand million dollars")
    # Rounded once, from the exact amount: a product would be rounded to the context's digits first.
    return MicroUsd(int(amount.quantize(ONE_MICRO, rounding=ROUND_CEILING) * PER_DOLLAR))


def to_usd(amount: MicroUsd) -> float:
    """The amount in dollars, for formats whose field is a number of dollars."""
    return amount / PER_DOLLAR


def format_usd(amount: MicroUsd) -> str:
    """The amount for people: cents, or as many decimals as it takes to show it exactly."""
    dollars, micro = divmod(amount, PER_DOLLAR)
    decimals = f"{micro:06d}"
    while len(decimals) > 2 and decimals.endswith("0"):
        decimals = decimals[:-1]
    return f"${dollars:,}.{decimals}"
