"""Text for people: made safe for a terminal, times and durations as they are read."""

from __future__ import annotations

from datetime import datetime, timedelta

from nightherd.model.units import rough_duration

CONTROL = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
REORDERING = {0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
"""Marks that change the order in which a line is read, and separators that look like nothing."""

PAGE = 20
"""How many rows a list shows by default."""

SPELLED = {
    **{code: f"\\x{code:02x}" for code in CONTROL},
    **{code: f"\\u{code:04x}" for code in REORDERING},
    ord("\r"): "\\r",
}
"""What stands for each character that a terminal would obey."""


def neutralise(text: str) -> str:
    """`text` with everything a terminal would obey spelled out, so that it can only be read.

    An agent's output is a stranger's text: it must not move the cursor, set a title or hide a line.
    """
    return text.replace("\r\n", "\n").translate(SPELLED)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` made safe, on one line, cut with an ellipsis where it would be longer than `limit`."""
    flat = " ".join(neutralise(text).split())
    if limit is None or len(flat) <= limit:
        return flat
    return flat[: max(limit - 1, 0)].rstrip() + "…"


def local_text(at: datetime, zone: str | None = None) -> str:
    """Return an instant in the zone of that name, else in the local one (`TZ`), with the zone: for a terminal."""
    if zone is None:
        return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    from zoneinfo import ZoneInfo  # most commands show no other zone

    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S} {zone}"


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


def next_page(command: str, before: int, limit: int, **narrowed: str | None) -> str:
    """The command that lists what comes after a page, narrowed as that was."""
    given = {**narrowed, "limit": None if limit == PAGE else limit, "before": before}
    options = [f"--{name} {value}" for name, value in given.items() if value is not None]
    return " ".join([command, *options])


def length(duration: timedelta | None) -> str:
    """How long something took, as precisely as a person wants it; a dash when it is unknown."""
    return "-" if duration is None else rough_duration(duration)
