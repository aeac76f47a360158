"""Questions about workspaces, answered from rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nightherd.model.jobs.job import Job
from nightherd.model.workspaces.workspace import (
    Workspace,
    WorkspaceId,
    WorkspaceQuery,
    WorkspaceStatus,
)

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows


class MemoryWorkspaceReader:
    """The part of a `StateReader` that is about workspaces."""

    _rows: MemoryRows

    def find_workspace(self, workspace_id: str) -> Workspace | None:
        return self._rows.get(Workspace, workspace_id)

    def list_workspaces(self, query: WorkspaceQuery) -> Sequence[Workspace]:
        matching = [
            row
            for row in self._rows.all(Workspace)
            if query.agent in (None, row.agent)
            and (query.before is None or row.number < query.before)
            and (query.has_removed or row.status is not WorkspaceStatus.REMOVED)
        ]
        return sorted(matching, key=lambda row: -row.number)[: query.limit]

    def workspace_ids(self, prefix: str, limit: int) -> Sequence[WorkspaceId]:
        matching = [row for row in self._rows.all(Workspace) if row.id.startswith(prefix)]
        return [row.id for row in sorted(matching, key=lambda row: -row.number)][:limit]

    def jobs_of_workspace(self, workspace_id: str, limit: int) -> Sequence[Job]:
        mine = [job for job in self._rows.all(Job) if job.workspace_id == workspace_id]
        return sorted(mine, key=lambda job: -job.number)[:limit]

    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        return self._rows.open_jobs_in_workspace(workspace_id)
