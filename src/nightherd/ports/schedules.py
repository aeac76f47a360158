"""Questions about schedules and their slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from nightherd.model.schedules.schedule import ScheduleOverride, ScheduleState, Slot


class ScheduleReader(Protocol):
    """Questions about schedules."""

    def list_schedules(self, agent: str | None = None) -> Sequence[ScheduleState]:
        """The agent's schedules that were ever planned, fired or switched, by name; all agents' without one."""

    def list_overrides(self) -> Sequence[ScheduleOverride]:
        """The overrides of schedules, by key."""

    def list_slots(self, schedule_id: str, limit: int) -> Sequence[Slot]:
        """The schedule's slots, newest due first."""

    def slots_between(
        self, schedule_id: str, since: datetime, until: datetime, limit: int
    ) -> Sequence[Slot]:
        """The schedule's slots that were due from `since` to before `until`, newest due first."""
