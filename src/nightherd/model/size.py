"""Sizes as people write them: `512`, `64k`, `2g`, `1.5GiB`. Every unit is a power of 1024."""

from __future__ import annotations

import re

from nightherd.errors import InvalidValueError

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
