"""Removing a workspace: its directory, its registration and, if nothing is lost by that, its branch.

Each step can be repeated. Snapshots stay, and so do the refs that keep the commits they need.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.workspace import Workspace, branch_of
from nightherd.workspaces.own_repository import OwnRepository, checkout_of
from nightherd.workspaces.record import Record, remove_tree
from nightherd.workspaces.repositories import (
    clear_stale_locks,
    delete_branch_unless_lost,
    keep_commits,
    locate,
)
from nightherd.workspaces.taking import bring_home
from nightherd.workspaces.tools import Tools


def remove(tools: Tools, workspace: Workspace) -> None:
    """Remove the workspace, or what is left of it."""
    record = tools.record(workspace.id)
    with tools.owning(record) as owned:
        common_dir = _common_dir(owned, record, workspace)
        worktree = None
        if common_dir is not None:
            worktree = checkout_of(owned.git, workspace, common_dir, record.top)
        if worktree is not None and worktree.original is not None:
            worktree = None  # the registration is not of this copy
        if worktree is not None:
            head = worktree.head()
            if head is not None and common_dir is not None:
                if isinstance(worktree, OwnRepository):
                    head = _bring_home(owned, record, workspace, common_dir, worktree, head)
                if head is not None:
                    keep_commits(owned.git, common_dir, workspace.id, {"head": head})
        owned.probe("remove.begun")
        _remove_directories(owned, record)
        if worktree is not None and common_dir is not None:
            worktree.unregister()
            owned.probe("remove.unregistered")
            branch = workspace.branch or branch_of(workspace.agent, workspace.id)
            clear_stale_locks(common_dir, workspace.id, branch)
            delete_branch_unless_lost(owned.git, common_dir, branch, workspace.base_commit)
            owned.probe("remove.branch_deleted")
        record.forget()
        owned.probe("remove.forgotten")


def _bring_home(
    tools: Tools,
    record: Record,
    workspace: Workspace,
    common_dir: str,
    own: OwnRepository,
    head: str,
) -> str | None:
    """Bring the last commit home; None for one that is damaged, which must not keep a workspace for ever."""
    origin = record.origin()
    if origin is None:
        return None
    try:
        origin = replace(origin, common_dir=common_dir)
        bring_home(tools, record, workspace, origin, own, head)
    except WorkspaceError as error:
        if error.can_pass:
            raise
        return None
    return head


def _remove_directories(tools: Tools, record: Record) -> None:
    record.discard_directory(lambda: tools.probe("remove.renamed"))
    with suppress(OSError):
        remove_tree(record.top.with_name(f"{record.top.name}.making"))
    tools.probe("remove.deleted")


def _common_dir(tools: Tools, record: Record, workspace: Workspace) -> str | None:
    """The repository of a worktree; None for other modes, and when the repository is gone."""
    if not workspace.mode.has_branch:
        return None
    try:
        return locate(tools.git, workspace.root).common_dir
    except WorkspaceError:
        origin = record.origin()
        known = origin.common_dir if origin is not None else None
        return known if known is not None and Path(known).is_dir() else None
