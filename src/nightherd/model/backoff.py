"""Backoff: growing pauses between tries to begin again after a fault that may pass."""

from __future__ import annotations

FIRST_S = 0.5
LONGEST_S = 15.0


class Backoff:
    """The pauses of one series of tries."""

    def __init__(self) -> None:
        self._next_s = FIRST_S
        self._reason = ""
        self._held_until = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether the last try failed."""
        return bool(self._reason)

    def fail(self, reason: str) -> tuple[float, bool]:
        """Note a failed try: how long to pause before the next one, and whether the reason is a new one."""
        is_new, self._reason = reason != self._reason, reason
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_S)
        return pause_s, is_new

    def hold(self, reason: str, monotonic: float) -> None:
        """Note a failed try: nothing is to be tried for the length of the pause."""
        self._held_until = monotonic + self.fail(reason)[0]

    def is_held(self, monotonic: float) -> bool:
        """Whether the pause is not over yet."""
        return monotonic < self._held_until

    def reset(self) -> None:
        """Note a try that worked."""
        self._next_s, self._reason = FIRST_S, ""
