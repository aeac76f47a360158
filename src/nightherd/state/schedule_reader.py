"""Reading schedules, their overrides and their slots."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nightherd.model.schedules.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.text import utc_text
from nightherd.state.visit_reader import SqliteVisitReader


class SqliteScheduleReader(SqliteVisitReader):
    """Questions about schedules."""

    def list_schedules(self, agent: str | None = None) -> Sequence[ScheduleState]:
        rows = self._rows()
        if rows is None:
            return ()
        if agent is None:
            return rows.list(ScheduleState, "list_schedules", ())
        return rows.list(ScheduleState, "schedules_of_agent", (agent,))

    def list_overrides(self) -> Sequence[ScheduleOverride]:
        rows = self._rows()
        return rows.list(ScheduleOverride, "list_overrides", ()) if rows else ()

    def list_slots(self, schedule_id: str, limit: int) -> Sequence[Slot]:
        rows = self._rows()
        return rows.list(Slot, "slots_of_schedule", (schedule_id, limit)) if rows else ()

    def slots_between(
        self, schedule_id: str, since: datetime, until: datetime, limit: int
    ) -> Sequence[Slot]:
        rows = self._rows()
        values = (schedule_id, utc_text(since), utc_text(until), limit)
        return rows.list(Slot, "slots_between", values) if rows else ()
