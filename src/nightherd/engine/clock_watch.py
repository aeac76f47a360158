"""Clock watch: notices a wall clock that is set, by the time that has passed since boot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from nightherd.model.clock_jump import Reading, describe_jump, jump_between
from nightherd.model.due import Floor

UNKNOWN = "missed: it was due before the schedule was first seen"


class ClockWatch:
    """Compares every reading with the one before. `known_since` is when the state directory was made."""

    def __init__(
        self,
        since_boot: Callable[[], float],
        known_since: datetime | None,
        on_jump: Callable[[str], None],
    ) -> None:
        self._since_boot = since_boot
        self._on_jump = on_jump
        self._last: Reading | None = None
        self.floor = Floor(at=known_since, reason=UNKNOWN) if known_since is not None else None
        """No slot before it was missed: nothing was there to miss it, or the clock jumped over it."""

    def is_set_back(self, now: datetime) -> bool:
        """Whether the clock shows an earlier time than before; a clock that was set is told either way."""
        before, reading = self._last, Reading(at=now, since_boot=self._since_boot())
        self._last = reading
        if before is None:
            return False
        jump = jump_between(before, reading)
        if jump is not None:
            what = describe_jump(jump)
            self._on_jump(what)
            if jump > timedelta():
                self.floor = Floor(at=now, reason=f"missed: {what}")
        return now < before.at
