"""Reset: how long a provider that refuses a request for now wants to be left alone, by its counters.

Most say it outright (`Retry-After`, which pydantic-ai reads). Some only tell of each counter how much of it
remains, and when it begins anew: as an instant, a number of seconds, or a duration like `6m0s`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from nightherd.errors import InvalidValueError
from nightherd.model.duration import parse_duration

RESET = re.compile(r"(^|-)ratelimit-(\S+-)?reset(-|$)")
"""How headers are called that say when a counter begins anew, in small letters."""
AN_INSTANT = 1e9
"""A number from here on is no length of time, but seconds since 1970."""
IN_MILLISECONDS = 1e11
"""And from here on milliseconds."""


def seconds_until_reset(headers: Mapping[str, str] | None, now: datetime) -> float | None:
    """Until every counter that is used up has begun anew; None when nothing says so."""
    given = headers or {}
    names = (name for name in given if RESET.search(name) and _is_used_up(given, name))
    waits = (_wait(given[name].strip(), now) for name in names)
    return max((wait for wait in waits if wait is not None), default=None)


def _is_used_up(headers: Mapping[str, str], reset: str) -> bool:
    """Whether nothing remains of the counter, as far as anybody says."""
    remaining = headers.get(reset.replace("reset", "remaining"), "0")
    try:
        return float(remaining) <= 0
    except ValueError:
        return False


def _wait(said: str, now: datetime) -> float | None:
    """The seconds that are meant; none are left of a time that is over."""
    with suppress(ValueError):
        number = float(said)
        if number < AN_INSTANT:
            return max(number, 0.0)
        since = number / 1_000 if number >= IN_MILLISECONDS else number
        return max(since - now.timestamp(), 0.0)
    with suppress(InvalidValueError):
        return parse_duration(said).total_seconds()
    with suppress(ValueError):
        at = datetime.fromisoformat(said)
        whole = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return max((whole - now).total_seconds(), 0.0)
    return None
