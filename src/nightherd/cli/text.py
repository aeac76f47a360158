"""Text for people: made safe for a terminal, times and durations as they are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Control characters but newline and tab, and the marks that reorder what is read."""

SPACE = re.compile(r"\s+")


def neutralise(text: str) -> str:
    """`text` with everything a terminal would obey spelled out, so that it can only be read.

    An agent's output is a stranger's text: it must not move the cursor, set a title or hide a line.
    """
    return UNSAFE.sub(lambda found: _spelled(found[0]), text.replace("\r\n", "\n"))


def _spelled(character: str) -> str:
    code = ord(character)
    if character == "\r":
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, limit: int | None = None) -> str:
    """`text` made safe, on one line, cut with an ellipsis where it would be longer than `limit`."""
    flat = SPACE.sub(" ", neutralise(text)).strip()
    if limit is None or len(flat) <= limit:
        return flat
    return flat[: max(limit - 1, 0)].rstrip() + "…"


def absolute(at: datetime | None) -> str:
    """An instant in UTC to the second; a dash when there is none."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def relative(at: datetime | None, now: datetime) -> str:
    """How long ago, in one unit; a dash when there is no instant."""
    if at is None:
        return "-"
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    size = _largest_unit(abs(seconds))
    return f"{size} ago" if seconds > 0 else f"in {size}"


def _largest_unit(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


def length(duration: timedelta | None) -> str:
    """How long something took, as precisely as a person wants it."""
    if duration is None:
        return "-"
    seconds = max(duration.total_seconds(), 0)
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"
