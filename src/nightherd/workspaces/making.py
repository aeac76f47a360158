"""Making a workspace: a worktree, a copy or an empty directory, whole or finished by the next call.

A mark says that it is being made; its index is written last and says that it is made. What a killed process left in
between is made anew. A directory without either mark is work whose record was lost: it is adopted as it is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.text import whole_text
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import BeginsWith, Made
from nightherd.workspaces.checkout import restore
from nightherd.workspaces.copies import copy_tree, empty_directory
from nightherd.workspaces.git import failure
from nightherd.workspaces.own_repository import OwnRepository
from nightherd.workspaces.record import Origin, Record, remove_tree
from nightherd.workspaces.scan import WorkTree
from nightherd.workspaces.snapshots import take
from nightherd.workspaces.stores import store_name
from nightherd.workspaces.taking import snapshot_now, work_tree_of
from nightherd.workspaces.tools import Tools
from nightherd.workspaces.worktree_making import adopt_worktree, check_worktree, make_worktree

KEPT = "kept"


def make(
    tools: Tools, workspace: Workspace, policy: WorkspacePolicy, begins_with: BeginsWith | None
) -> Made:
    """Make the workspace or finish it; one that is whole is only looked at."""
    record = tools.record(workspace.id)
    with tools.owning(record) as owned:
        if record.has_directory and not record.is_half_made:
            return _keep(owned, record, workspace, policy)
        record.begin()
        owned.probe("workspace.begun")
        try:
            record.discard_directory()
            if workspace.mode.has_branch:
                origin, first, notes = make_worktree(owned, record, workspace, policy, begins_with)
                made = _made(record, origin, first, notes)
                return _with_borrowed(owned, record, workspace, origin, made)
            return _make_copy(owned, record, workspace, policy, begins_with)
        except WorkspaceError:
            with suppress(WorkspaceError):  # what is left counts as half made
                record.discard_directory()
            raise


def _keep(tools: Tools, record: Record, workspace: Workspace, policy: WorkspacePolicy) -> Made:
    """Look at a workspace that is there; what is known of it is repaired if need be."""
    origin = record.origin() if record.is_made else None
    is_adopted = origin is None
    if workspace.mode.has_branch:
        if origin is None:
            origin = adopt_worktree(tools, record, workspace)
        origin = check_worktree(tools, record, workspace, origin)
    elif origin is None:
        name = workspace.store or store_name(workspace.root)
        tools.stores.ensure(name)
        origin = _origin_of(workspace, name, record)
    if is_adopted or str(record.top) != origin.top:
        origin = replace(origin, top=str(record.top))
        record.write_origin(origin)
    snapshot = snapshot_now(tools, record, workspace, policy, origin)
    # The row does not know yet where it began: the process that made it was killed before it could say so.
    is_told = workspace.base_tree is not None
    made = _made(record, origin, snapshot, (), kept=is_told)
    return _with_borrowed(tools, record, workspace, origin, made)


def _with_borrowed(
    tools: Tools, record: Record, workspace: Workspace, origin: Origin, made: Made
) -> Made:
    """Say what a container has to see besides the directory."""
    if workspace.mode is not WorkspaceMode.CLONE or origin.common_dir is None:
        return made
    own = OwnRepository(tools.git, origin.common_dir, record.top)
    return replace(made, borrowed=own.borrowed)


def _origin_of(workspace: Workspace, store: str, record: Record) -> Origin:
    return Origin(
        origin=workspace.mode.value,
        store=store,
        top=str(record.top),
        base=workspace.base,
        base_commit=workspace.base_commit,
        base_tree=workspace.base_tree,
    )


def _make_copy(
    tools: Tools,
    record: Record,
    workspace: Workspace,
    policy: WorkspacePolicy,
    begins_with: BeginsWith | None,
) -> Made:
    name = workspace.store or (begins_with.store if begins_with else store_name(workspace.root))
    store = tools.stores.ensure(name)
    notes = _fill(tools, record, workspace)
    tools.probe("workspace.filled")
    work_tree = replace(work_tree_of(tools, record, policy, store, None), index=record.draft)
    taken = take(work_tree, probe=tools.probe)
    tree, base_tree, kind = taken.tree, taken.tree, workspace.mode.value
    if begins_with is not None:
        _restore_copy(tools, work_tree, begins_with)
        tree, kind = begins_with.tree, "snapshot"
        base_tree = begins_with.base_tree or taken.tree
    elif workspace.base_tree is not None:
        base_tree = workspace.base_tree
    origin = Origin(origin=kind, store=name, top=str(record.top), base_tree=base_tree)
    record.finish(origin)
    tools.probe("workspace.made")
    record.remember(tree, None, is_unsettled=taken.is_unsettled)
    left_out = tuple(map(whole_text, taken.left_out))
    return _made(record, origin, Snapshot(tree=tree, left_out=left_out), notes)


def _restore_copy(tools: Tools, work_tree: WorkTree, begins_with: BeginsWith) -> None:
    restore(tools.git, work_tree.store, begins_with.tree, work_tree.top, work_tree.index)
    tools.probe("workspace.restored")


def _fill(tools: Tools, record: Record, workspace: Workspace) -> list[str]:
    """Make the directory: filled under another name first, so that it is never taken for whole."""
    draft = record.top.with_name(f"{record.top.name}.making")
    notes: list[str] = []
    try:
        remove_tree(draft)
        if workspace.mode is WorkspaceMode.EMPTY:
            empty_directory(draft)
        else:
            root = Path(workspace.root)
            if not root.is_dir():
                message = f"there is no directory '{root}' to copy"
                raise WorkspaceError(message, hint="set working_directory to one that exists")
            notes = copy_tree(
                Path(os.path.realpath(root)), draft, skipped=(tools.state_dir, record.directories)
            )
        tools.probe("workspace.copied")
        draft.rename(record.top)
    except WorkspaceError:
        with suppress(OSError):
            remove_tree(draft)
        raise
    except OSError as error:
        raise failure(error, f"the workspace '{record.top}' cannot be made") from error
    return notes


def _made(
    record: Record,
    origin: Origin,
    snapshot: Snapshot,
    notes: list[str] | tuple[str, ...],
    *,
    kept: bool = False,
) -> Made:
    return Made(
        directory=str(record.top / origin.prefix),
        origin=KEPT if kept else origin.origin,
        snapshot=snapshot,
        store=origin.store,
        prefix=origin.prefix,
        branch=origin.branch,
        base=origin.base,
        base_commit=origin.base_commit,
        base_tree=origin.base_tree,
        notes=tuple(notes),
    )
