"""Workspace: the directory that one job, session or run works in, and what its files were last."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

from nightherd.model.ids import JobId, SessionId
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope

WorkspaceId = NewType("WorkspaceId", str)
"""The id of the job or session that it was first made for."""

BRANCH_PREFIX = "nightherd"


class WorkspaceStatus(StrEnum):
    """Where a workspace stands."""

    MAKING = "making"
    """On record, and perhaps half made."""
    READY = "ready"
    REMOVING = "removing"
    """To be removed, and perhaps half removed."""
    REMOVED = "removed"


WORKSPACE_LIFECYCLE = Lifecycle(
    "workspace",
    {
        WorkspaceStatus.MAKING: frozenset({WorkspaceStatus.READY, WorkspaceStatus.REMOVING}),
        # Back to making: its directory was lost and is made again from its last snapshot.
        WorkspaceStatus.READY: frozenset({WorkspaceStatus.MAKING, WorkspaceStatus.REMOVING}),
        WorkspaceStatus.REMOVING: frozenset({WorkspaceStatus.REMOVED}),
        WorkspaceStatus.REMOVED: frozenset({WorkspaceStatus.MAKING}),
    },
)


class Landed(StrEnum):
    """How the changes of a workspace reached somewhere else."""

    APPLIED = "applied"
    MERGED = "merged"
    PUSHED = "pushed"


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace's row. Its directory is named by its id, below the directory of workspaces."""

    id: WorkspaceId
    agent: str
    mode: WorkspaceMode
    scope: WorkspaceScope
    status: WorkspaceStatus
    root: str
    """The directory it was made from: the agent's `working_directory`."""
    created_at: datetime
    last_used_at: datetime
    keep: Keep = Keep.UNTIL_MERGED
    session_id: SessionId | None = None
    """The session that works in it, or worked in it last."""
    job_id: JobId | None = None
    """The job that works in it, or worked in it last."""
    store: str | None = None
    """The name of the store that has its snapshots; workspaces of one repository share one."""
    prefix: str = ""
    """The directory of the agent inside a worktree, when `root` is below the top of its repository."""
    branch: str | None = None
    base: str | None = None
    """The name of the branch, tag or commit it began at, as it was configured or found."""
    base_commit: str | None = None
    base_tree: str | None = None
    """The tree it began with; what it holds besides is its work."""
    tree: str | None = None
    """The last snapshot."""
    head: str | None = None
    """The commit its branch was at in the last snapshot."""
    left_out: int = 0
    """How many files the last snapshot could not hold."""
    size_bytes: int | None = None
    """Measured when its last job ended."""
    landed: Landed | None = None
    landed_tree: str | None = None
    """The snapshot whose changes were applied, merged or pushed last."""
    landed_at: datetime | None = None
    removed_at: datetime | None = None
    number: int = 0
    """Place in the order of creation; the cursor that lists page by."""

    @property
    def is_dirty(self) -> bool:
        """Whether it holds work that is nowhere else, as far as its last snapshot says."""
        if self.left_out:
            return True
        return self.tree is not None and self.tree not in (self.base_tree, self.landed_tree)

    @property
    def is_there(self) -> bool:
        """Whether its directory is made, or is to be."""
        return self.status in (WorkspaceStatus.MAKING, WorkspaceStatus.READY)


class WorkspaceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which workspaces a list shows: newest first, `before` a number, at most `limit`."""

    agent: str | None = None
    has_removed: bool = False
    """Whether those that were removed are listed too."""
    before: int | None = None
    limit: int = 20


_NO_REF = re.compile(r"[^A-Za-z0-9_.-]+")


def branch_of(agent: str, workspace_id: str) -> str:
    """Return the branch of a workspace: `nightherd/<agent>/<id>`, with only what a ref may have."""
    name = _NO_REF.sub("-", agent).strip(".-") or "agent"
    while ".." in name:
        name = name.replace("..", ".")
    return f"{BRANCH_PREFIX}/{name.removesuffix('.lock')}/{workspace_id}"
