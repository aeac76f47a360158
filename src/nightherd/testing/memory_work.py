"""Work items in memory: what readers ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nightherd.model.ids import JobId
from nightherd.model.work.item import WorkId, WorkItem
from nightherd.model.work.source import SourceState
from nightherd.testing.memory_chat import MemoryChatReader

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows


class MemoryWorkReader(MemoryChatReader):
    """The part of `MemoryReader` that is about work, and about chat."""

    if TYPE_CHECKING:
        _rows: MemoryRows

    def find_work_item(self, id: WorkId) -> WorkItem | None:
        return self._rows.get(WorkItem, id)

    def open_work_items(self) -> Sequence[WorkItem]:
        found = [one for one in self._rows.all(WorkItem) if one.is_open]
        return sorted(found, key=lambda one: (one.reserved_at, one.id))

    def list_work_items(self, limit: int) -> Sequence[WorkItem]:
        found = self._rows.all(WorkItem)
        return sorted(found, key=lambda one: (one.changed_at, one.id), reverse=True)[:limit]

    def work_item_of_job(self, job_id: JobId) -> WorkItem | None:
        return next((one for one in self._rows.all(WorkItem) if one.job_id == job_id), None)

    def list_work_sources(self) -> Sequence[SourceState]:
        return sorted(self._rows.all(SourceState), key=lambda one: one.id)
