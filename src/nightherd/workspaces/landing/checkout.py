"""A branch that is checked out somewhere: whether it may be moved, and what its files and index become."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.workspaces.git import split
from nightherd.workspaces.landing.context import LandingContext
from nightherd.workspaces.landing.files import FileChanges, PathChange
from nightherd.workspaces.landing.index import index_digest
from nightherd.workspaces.landing.record import MovedRef
from nightherd.workspaces.landing.repository import HEADS, CheckedOut
from nightherd.workspaces.landing.scratch import NO_MODE, TreeChange
from nightherd.workspaces.landing.stage import (
    check_paths,
    listed,
    occupied_directories,
    read_files,
    stage_files,
    submodules_in,
)

INDEX = "index"
SPARSE = "S"
"""How git marks a file in the index that is not checked out."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What moving a branch does to the directory that has it checked out."""

    moved: MovedRef
    top: str | None = None
    changes: tuple[PathChange, ...] = ()


def find_worktree(context: LandingContext, ref: str) -> CheckedOut | None:
    """Return the directory that has the branch checked out; None when none has.

    `RefusedError` when it may not be changed there: a rebase is under way, or an agent works there.
    """
    name = ref.removeprefix(HEADS)
    worktrees = context.known_repository().worktrees(context.top)
    for worktree in worktrees:
        if worktree.branch != ref and worktree.occupies(ref):
            message = f"branch {name} is in use by a rebase or bisect in '{worktree.directory}'"
            raise RefusedError(message, hint="finish that first")
    users = [worktree for worktree in worktrees if worktree.branch == ref]
    if not users:
        return None
    worktree = users[0]
    if len(users) > 1:
        places = " and ".join(f"'{user.directory}'" for user in users)
        raise RefusedError(f"branch {name} is checked out in {places}")
    if any(worktree.directory.resolve().is_relative_to(place) for place in context.protected):
        message = f"branch {name} is checked out in a workspace: '{worktree.directory}'"
        raise RefusedError(message, hint="choose a branch of your own with --into")
    if not worktree.is_known or not worktree.directory.is_dir():
        message = (
            f"branch {name} is checked out in a directory that is not there: '{worktree.directory}'"
        )
        raise WorkspaceError(message, hint="git worktree prune")
    if worktree.under_way is not None:
        message = f"{worktree.under_way} is under way in '{worktree.directory}'"
        raise RefusedError(message, hint="finish or abort it first")
    return worktree


def prepare(context: LandingContext, worktree: CheckedOut, moved: MovedRef) -> Prepared:
    """Stage what becomes of the directory's files and index. `RefusedError` when a changed file is not as committed."""
    scratch, top = context.scratch, worktree.directory.resolve()
    old, new = scratch.tree_of(moved.old), scratch.tree_of(moved.new)
    changes = scratch.diff(old, new)
    paths = [change.path for change in changes]
    check_paths(top, paths, context.protected)
    nested = submodules_in(changes)
    if nested:
        message = f"submodules would change in '{top}': {listed(nested)}"
        raise RefusedError(message, hint="merge the branch yourself")
    digest = index_digest(worktree.index)
    staged = _copy_index(context, worktree)
    _check_entries(context, staged, changes, top)
    files = FileChanges(top=top, stage=context.stage, changes=(), probe=context.probe)
    ours = context.known_files(read_files(scratch, top, old, paths, files.befores), old)
    dirty = [change.path for change in scratch.diff(old, ours)]
    dirty += occupied_directories(top, changes)
    if dirty:
        raise _not_committed(dirty, top)
    arguments = ("read-tree", "-i", "-m", moved.old, moved.new)
    scratch.run(
        scratch.place(index=staged), *arguments, doing=f"the index of '{top}' cannot be merged"
    )
    return Prepared(
        moved=msgspec.structs.replace(moved, index=str(worktree.index), index_before=digest),
        top=str(top),
        changes=stage_files(scratch, top, new, changes, files),
    )


def _copy_index(context: LandingContext, worktree: CheckedOut) -> Path:
    """Copy the index, and what git keeps beside it when it is split."""
    staged = context.stage / INDEX
    if not worktree.index.is_file():
        context.scratch.run(context.scratch.place(index=staged), "read-tree", "--empty")
        return staged
    shutil.copy2(worktree.index, staged)  # its time says which entries git has to look at again
    for shared in worktree.git_dir.glob("sharedindex.*"):
        (context.scratch.git_dir / shared.name).symlink_to(shared.absolute())
    return staged


def _check_entries(
    context: LandingContext, index: Path, changes: Sequence[TreeChange], top: Path
) -> None:
    """`RefusedError` when the index has other entries for changed paths than the branch: staged, unmerged or sparse."""
    arguments = ("ls-files", "-z", "-s", "-t")
    entries: dict[str, tuple[str, str]] = {}
    sparse, unmerged = [], []
    for line in split(context.scratch.run(context.scratch.place(index=index), *arguments)):
        meta, _, path = line.partition("\t")
        mark, mode, object_id, stage = meta.split(" ")
        entries[path] = (mode, object_id)
        if mark == SPARSE:
            sparse.append(path)
        if stage != "0":
            unmerged.append(path)
    if unmerged:
        raise RefusedError(f"'{top}' has unmerged files: {listed(sorted(set(unmerged)))}")
    changed = {change.path for change in changes}
    hidden = sorted(changed.intersection(sparse))
    if hidden:
        message = f"files that would change are not checked out in '{top}': {listed(hidden)}"
        raise RefusedError(message, hint="git sparse-checkout disable")
    staged = [
        change.path
        for change in changes
        if entries.get(change.path, (NO_MODE, "")) != _entry(change)
    ]
    if staged:
        raise _not_committed(staged, top)


def _entry(change: TreeChange) -> tuple[str, str]:
    return (NO_MODE, "") if change.old_mode == NO_MODE else (change.old_mode, change.old_id)


def _not_committed(paths: Sequence[str], top: Path) -> RefusedError:
    return RefusedError(
        f"files that would change are not as committed in '{top}': {listed(sorted(set(paths)))}",
        hint="commit them or move them away",
    )
