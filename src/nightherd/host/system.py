"""The system's clock, and where random text comes from."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from nightherd.model.ids import ALPHABET


class SystemClock:
    """Reads the machine's clocks; the only place that does."""

    def now(self) -> datetime:
        """This instant, aware and in UTC."""
        return datetime.now(UTC)  # noqa: TID251 (this is the clock)

    def since_boot(self) -> float:
        """Seconds since the machine started, also those in which it slept where the system counts them."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()


def random_text(length: int) -> str:
    """`length` characters of the id alphabet, unpredictable and each as likely as any other."""
    # One draw for the whole text: a system call for each character costs more than all else about an id.
    number = _random_below(len(ALPHABET) ** length)
    characters = []
    for _ in range(length):
        number, place = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[place])
    return "".join(characters)


def _random_below(limit: int) -> int:
    """As `secrets.randbelow`, whose import costs every command a third of a bare interpreter's start."""
    bits = limit.bit_length()
    size = (bits + 7) // 8
    while (number := int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)) >= limit:
        pass  # numbers at or above the limit would make some texts likelier than others
    return number
