"""Keeping: whether a workspace may be removed by itself, and what keeps it otherwise."""

from __future__ import annotations

from enum import StrEnum

from nightherd.model.jobs.job import JobStatus
from nightherd.model.text import counted
from nightherd.model.workspaces.policy import Keep, WorkspaceScope
from nightherd.model.workspaces.workspace import Workspace, WorkspaceStatus


class Hold(StrEnum):
    """What keeps a workspace."""

    OPEN_JOB = "open_job"
    """A job that has not ended works in it."""
    OWNER = "owner"
    """Its session can be continued, or its run has not ended."""
    ALWAYS = "always"
    LEFT_OUT = "left_out"
    """It has files that no snapshot holds."""
    FAILED = "failed"
    """Its last job did not complete, and `keep` is `on_failure`."""
    NOT_MERGED = "not_merged"
    """It has changes that were not applied, merged or pushed, and `keep` is `until_merged`."""


def what_keeps(
    workspace: Workspace,
    *,
    has_open_job: bool,
    is_owner_over: bool,
    last_status: JobStatus | None,
) -> Hold | None:
    """Return what keeps the workspace; None when it may be removed without asking anybody.

    `last_status` is the status of the job that worked in it last. A removal that was begun is always finished.
    """
    if workspace.status is WorkspaceStatus.REMOVING:
        return None
    if has_open_job:
        return Hold.OPEN_JOB
    if not is_owner_over:
        return Hold.OWNER
    if workspace.keep is Keep.ALWAYS:
        return Hold.ALWAYS
    if workspace.left_out:
        return Hold.LEFT_OUT
    if workspace.keep is Keep.ON_FAILURE and last_status is not JobStatus.COMPLETED:
        return Hold.FAILED
    if workspace.keep is Keep.UNTIL_MERGED and workspace.is_dirty:
        return Hold.NOT_MERGED
    return None


def hold_text(hold: Hold | None, workspace: Workspace) -> str:
    """Say in words what keeps the workspace."""
    match hold:
        case None if workspace.status is WorkspaceStatus.REMOVED:
            return "nothing; it was removed"
        case None:
            return f"nothing (keep: {workspace.keep}); the next run of retention removes it"
        case Hold.OPEN_JOB:
            return "a job that has not ended works in it"
        case Hold.OWNER if workspace.scope is WorkspaceScope.RUN:
            return "its run has not ended"
        case Hold.OWNER:
            return "its session can be continued"
        case Hold.ALWAYS:
            return "keep: always; only a person removes it"
        case Hold.LEFT_OUT:
            files = counted(workspace.left_out, "file")
            return f"no snapshot holds {files} of it; only a person removes it"
        case Hold.FAILED:
            return "keep: on_failure; its last job did not complete"
        case Hold.NOT_MERGED:
            return "keep: until_merged; it has changes that were not applied, merged or pushed"
