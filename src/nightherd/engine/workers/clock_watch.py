"""Clock watch: notices a wall clock that is set, by the time that has passed since boot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from nightherd.engine.contexts import Stores
from nightherd.model.change import Applied, Change
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.schedules.clock_jump import Reading, describe_jump, jump_between
from nightherd.model.schedules.due import Floor

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
        """Whether the clock shows an earlier time than before; a clock that was set is reported either way."""
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


AT_ONCE = 50


async def wake_jobs(context: Stores) -> int:
    """Let every job continue whose time has come; how many did. However many ask at once, each continues once."""
    at = context.clock.now()
    due = context.reader.jobs_to_wake(at, AT_ONCE)
    if not due:
        return 0
    changes: list[Change] = [ResumeJob(job_id=one, at=at, only_due=True) for one in due]
    answers = await context.state.apply(changes)
    return sum(isinstance(answer, Applied) for answer in answers)
