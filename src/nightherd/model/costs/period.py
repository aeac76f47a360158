"""Period: the time that costs are asked for, as people write it, and its days in a time zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.costs.cell import quarter_after, quarter_of, start_of
from nightherd.model.units import parse_duration

WHOLE_DAYS = re.compile(r"(\d{1,5})\s*([dw])", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
DEFAULT = "7d"
MOST_DAYS = 4_000
"""Days that a period may have where costs are grouped by day."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """A day of a time zone, as quarters of an hour; `until` is not part of it."""

    name: str
    """As in `2026-11-15`."""
    first: int
    until: int


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Quarters of an hour from `first` to before `until`."""

    first: int
    until: int

    @property
    def since(self) -> datetime:
        """When it begins."""
        return start_of(self.first)

    @property
    def end(self) -> datetime:
        """When it ends."""
        return start_of(self.until)


def read_period(since: str | None, until: str | None, now: datetime, zone: tzinfo) -> Period:
    """Return the period between two times as people write them: until now, and since a week ago unless they say so.

    `7d` is that many days with today; `24h` that long ago; `2026-11-01` its midnight. It begins and ends with whole
    quarters of an hour. `InvalidValueError` for a time that is none, and for an end that is not after the beginning.
    """
    begin = read_time(since if since is not None else DEFAULT, now, zone, word="since")
    end = now if until is None else read_time(until, now, zone, word="until")
    period = Period(first=quarter_of(begin), until=quarter_after(end))
    if until is None:
        period = Period(first=period.first, until=max(period.until, quarter_of(now) + 1))
    if period.until <= period.first:
        raise InvalidValueError(f"the period ends before it begins: since {begin}, until {end}")
    return period


def days_of(period: Period, zone: tzinfo) -> tuple[Day, ...]:
    """Return the days of the zone that the period has a part of, in order; the first and the last may be cut."""
    first = period.since.astimezone(zone).date()
    last = start_of(period.until - 1).astimezone(zone).date()
    count = (last - first).days + 1
    if count > MOST_DAYS:
        raise InvalidValueError(
            f"these are {count:,} days; costs by day are of {MOST_DAYS:,} at most"
        )
    starts = [quarter_after(midnight(first + timedelta(days=n), zone)) for n in range(count + 1)]
    return tuple(
        Day(
            name=(first + timedelta(days=n)).isoformat(),
            first=max(starts[n], period.first),
            until=min(starts[n + 1], period.until),
        )
        for n in range(count)
    )


def day_at(at: datetime, zone: tzinfo) -> tuple[Day, datetime]:
    """Return the day of a time zone that an instant is in, and when it ends."""
    today = at.astimezone(zone).date()
    ends_at = midnight(today + timedelta(days=1), zone)
    first, until = quarter_after(midnight(today, zone)), quarter_after(ends_at)
    return Day(name=today.isoformat(), first=first, until=until), ends_at


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return when a day begins in a time zone."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def read_time(text: str, now: datetime, zone: tzinfo, *, word: str) -> datetime:
    """Return a time as people write it (`read_period`); `InvalidValueError`, with `word`, for one that is none."""
    text = text.strip()
    try:
        days = WHOLE_DAYS.fullmatch(text)
        if days is not None:
            count = int(days[1]) * (7 if days[2].lower() == "w" else 1)
            return midnight(now.astimezone(zone).date() - timedelta(days=max(count - 1, 0)), zone)
        if DATE.fullmatch(text):
            return midnight(date.fromisoformat(text), zone)
        if text[:4].isdigit() and text[4:5] == "-":
            at = datetime.fromisoformat(text)
            return at if at.tzinfo is not None else at.replace(tzinfo=zone)
        return now - parse_duration(text)
    except (ValueError, OverflowError, InvalidValueError):
        raise InvalidValueError(
            f"{word}: {text[:40]!r} is no time; write 7d, 24h, 2026-11-01 or 2026-11-01T03:00Z"
        ) from None
