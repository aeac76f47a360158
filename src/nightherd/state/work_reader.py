"""Reading work items and how their sources are doing."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.model.ids import JobId
from nightherd.model.work.item import WorkId, WorkItem
from nightherd.model.work.source import SourceState
from nightherd.state.chat_reader import SqliteChatReader

LATEST = "9999-12-31T23:59:59.999999Z"


class SqliteWorkReader(SqliteChatReader):
    """Questions about work."""

    def find_work_item(self, id: WorkId) -> WorkItem | None:
        rows = self._rows()
        return rows.get(WorkItem, id) if rows else None

    def open_work_items(self) -> Sequence[WorkItem]:
        return self._listed(WorkItem, "open_work_items")

    def list_work_items(self, limit: int) -> Sequence[WorkItem]:
        return self._listed(WorkItem, "list_work_items", LATEST, limit)

    def work_item_of_job(self, job_id: JobId) -> WorkItem | None:
        rows = self._rows()
        return rows.find(WorkItem, "work_item_of_job", job_id) if rows else None

    def list_work_sources(self) -> Sequence[SourceState]:
        return self._listed(SourceState, "list_work_sources")
