"""`Retry-After`: how long a server wants to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=366)


def parse_retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Return the wish of a server in seconds or as a date; None for one that says nothing usable."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return min(timedelta(seconds=int(text)), LONGEST)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return min(max(at - now, timedelta()), LONGEST)
