"""Questions about issues that are work, and about where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what work sources need
    from collections.abc import Sequence

    from nightherd.model.ids import JobId
    from nightherd.model.work.item import WorkId, WorkItem
    from nightherd.model.work.source import SourceState


class WorkReader(Protocol):
    """Questions about work items and their sources."""

    def find_work_item(self, id: WorkId) -> WorkItem | None: ...
    def open_work_items(self) -> Sequence[WorkItem]:
        """Every issue that is taken and not settled yet, the first taken first."""

    def list_work_items(self, limit: int) -> Sequence[WorkItem]:
        """The issues that changed last, the latest first."""

    def work_item_of_job(self, job_id: JobId) -> WorkItem | None:
        """The issue that the job works on, or worked on last."""

    def list_work_sources(self) -> Sequence[SourceState]:
        """How every source is doing, by id."""
