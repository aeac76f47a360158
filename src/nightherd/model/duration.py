"""Durations as people write them: `200ms`, `90s`, `30m`, `2h`, `1d`, `1w`, also `1h30m`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

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
