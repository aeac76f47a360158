"""Until: how long whoever asks over the socket waits for it, so that nothing is done after they gave up.

A process that was frozen finds old requests in its hands when it wakes. Those who sent them have had them
done another way by then.
"""

from __future__ import annotations

UNTIL = "nightherd-until"
"""A boot of this machine and a time on its monotonic clock, with a space between."""


def until_text(boot_id: str, monotonic: float) -> str:
    """The value of the header."""
    return f"{boot_id} {monotonic:.3f}"


def is_past(text: str, boot_id: str, monotonic: float) -> bool:
    """Whether that time is over; what cannot be read is."""
    boot, _, instant = text.partition(" ")
    try:
        return boot != boot_id or monotonic > float(instant)
    except ValueError:
        return True
