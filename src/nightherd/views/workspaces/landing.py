"""What became of bringing a job's changes home, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from nightherd.model.ids import JobId
from nightherd.model.workspaces.workspace import Landed, WorkspaceId
from nightherd.ports import LandingResult
from nightherd.views.workspaces.snapshots import shown_path


class LandingDocument(TypedDict):
    """Changes that were applied, merged or pushed, or would be. With `conflicts` nothing was changed."""

    job_id: str
    workspace: str
    how: Landed
    is_dry_run: bool
    target: str
    is_nothing: bool
    files: list[str]
    conflicts: list[str]
    branch: str | None
    commit: str | None
    is_fast_forward: bool
    url: str | None
    finished: list[str]
    """What was finished or undone first, of earlier requests that were killed."""


def landing_document(
    job_id: JobId,
    workspace: WorkspaceId,
    how: Landed,
    result: LandingResult,
    *,
    is_dry_run: bool,
    finished: Sequence[str] = (),
) -> LandingDocument:
    """Return what became of it as plain data."""
    return {
        "job_id": job_id,
        "workspace": workspace,
        "how": how,
        "is_dry_run": is_dry_run,
        "target": result.target,
        "is_nothing": result.is_nothing,
        "files": [shown_path(path) for path in result.paths],
        "conflicts": [shown_path(path) for path in result.conflicts],
        "branch": result.branch,
        "commit": result.commit,
        "is_fast_forward": result.is_fast_forward,
        "url": result.url,
        "finished": list(finished),
    }
