"""Durations as people write them: `200ms`, `90s`, `30m`, `2h`, `1d`, `1w`, also `1h30m`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import NewType

from nightherd.errors import InvalidValueError

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
PAIRS = (("d", "h"), ("h", "m"), ("m", "s"))
ONE_MS = timedelta(milliseconds=1)
LONGEST = timedelta(days=36_500)

PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", re.IGNORECASE | re.ASCII)


def parse_duration(text: str) -> timedelta:
    """The duration that `text` spells, or `InvalidValueError`. A bare number has no unit and is refused."""
    stripped = text.strip()
    position, total_ms = 0, 0.0
    while position < len(stripped):
        part = PART.match(stripped, position)
        if part is None:
            break
        total_ms += float(part[1]) * UNITS_MS[part[2].lower()]
        position = part.end()
    if not stripped or position != len(stripped):
        raise InvalidValueError(
            f"{text[:40]!r} is not a duration; write 200ms, 90s, 30m, 2h, 1d or 1w"
        )
    if total_ms > LONGEST.total_seconds() * 1_000:
        raise InvalidValueError(f"{text[:40]!r} is longer than a hundred years")
    return timedelta(milliseconds=total_ms)


def parse_instant(text: str) -> datetime:
    """The instant that `text` spells, in UTC, or `InvalidValueError`."""
    shown = f"{text[:40]!r}"
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidValueError(f"{shown} is not an instant; write 2026-11-15T12:00:00Z") from None
    if instant.tzinfo is None:
        raise InvalidValueError(f"{shown} has no time zone; add Z for UTC")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InvalidValueError(f"{shown} is not an instant that can be kept") from None


def elapsed_ms(begun_at: datetime, ended_at: datetime) -> int:
    """How long something took. Never less than nothing: the clock may have been set back meanwhile."""
    return max((ended_at - begun_at) // ONE_MS, 0)


def shortest(*spans: timedelta | None) -> timedelta | None:
    """The one that ends first; None when there is none."""
    return min((span for span in spans if span is not None), default=None)


def rough_duration(duration: timedelta) -> str:
    """How long something takes, for people: two units at most, never more than it is. `parse_duration` reads it.

    What people have written themselves is shown as they wrote it, by `format_duration`.
    """
    ms = max(duration // ONE_MS, 0)
    if ms < UNITS_MS["s"]:
        return f"{ms}ms" if ms else "0s"
    if ms < UNITS_MS["m"]:
        return f"{ms // 100 / 10:g}s"
    unit, smaller = next(two for two in PAIRS if ms >= UNITS_MS[two[0]])
    count, rest = divmod(ms, UNITS_MS[unit])
    beside = rest // UNITS_MS[smaller]
    return f"{count}{unit}{beside}{smaller}" if beside else f"{count}{unit}"


def format_duration(duration: timedelta) -> str:
    """The shortest spelling that `parse_duration` reads back, to the millisecond."""
    rest = round(duration.total_seconds() * 1_000)
    if rest == 0:
        return "0s"
    parts: list[str] = []
    for unit in ("w", "d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SIZE = re.compile(r"(\d+)(?:\.(\d+))?\s*([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """The number of bytes that `text` spells, or `InvalidValueError`."""
    match = SIZE.fullmatch(text.strip())
    if match is None or len(text) > 32:
        raise InvalidValueError(f"{text[:40]!r} is not a size; write 512, 64k, 512m, 2g or 1t")
    # In integers: a float would lose the last bytes of a big size.
    whole, fraction = match[1], match[2] or ""
    return int(whole + fraction) * UNITS[match[3].lower()] // int("1" + "0" * len(fraction))


def format_size(size_bytes: int) -> str:
    """A size for people: whole bytes below 1 KiB, else one decimal and a unit."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


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
