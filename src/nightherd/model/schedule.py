"""Schedule: a rule in time, and the lifecycle of its state."""

from __future__ import annotations

from enum import StrEnum

from nightherd.model.lifecycle import Lifecycle


class ScheduleStatus(StrEnum):
    """Where a schedule stands; `disabled` is also what a schedule that paused itself shows."""

    IDLE = "idle"
    RUNNING = "running"
    DISABLED = "disabled"


SCHEDULE_LIFECYCLE = Lifecycle(
    "schedule",
    {
        ScheduleStatus.IDLE: frozenset({ScheduleStatus.RUNNING, ScheduleStatus.DISABLED}),
        # Disabling while a job runs goes straight to disabled and stays there when the job ends.
        ScheduleStatus.RUNNING: frozenset({ScheduleStatus.IDLE, ScheduleStatus.DISABLED}),
        ScheduleStatus.DISABLED: frozenset({ScheduleStatus.IDLE}),
    },
)
