"""The commit that is merged or pushed: the head of the workspace's branch, or a new one with the snapshot on it."""

from __future__ import annotations

import shutil

import msgspec

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.ports.workspaces import Work
from nightherd.workspaces.landing.context import LandingContext
from nightherd.workspaces.landing.filters import unfiltered
from nightherd.workspaces.landing.index import index_digest
from nightherd.workspaces.landing.record import MovedRef
from nightherd.workspaces.landing.repository import HEADS, UserRepository
from nightherd.workspaces.landing.scratch import GITLINK
from nightherd.workspaces.landing.stage import listed

BRANCH_INDEX = "branch-index"


class WorkCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The commit, what of it the repository has already, and how the workspace's branch moves to it."""

    id: str
    known: tuple[str, ...]
    branch: MovedRef | None = None
    """None when the branch is there already, or stays where it is."""


def work_commit(context: LandingContext, work: Work) -> WorkCommit:
    """Return the commit of the work; a new one is in the scratch objects only.

    It goes on the workspace's branch when that is where the snapshot was taken. Commits that were added there since are
    part of it. When another job has the workspace by now, or the branch was reset, it begins at the snapshot's own head.
    """
    scratch, workspace = context.scratch, context.workspace
    repository = context.known_repository()
    head = _head(context, work)
    tree = _committed(context, work.tree, head)
    ref = f"{HEADS}{workspace.branch}" if workspace.branch else None
    tip = repository.tip(ref) if ref is not None else None
    if tip is not None and scratch.tree_of(tip) in (tree, work.tree):
        return WorkCommit(id=tip, known=(tip,))
    own = head
    if scratch.tree_of(head) not in (tree, work.tree):
        own = context.commits.commit(tree, (head,), work.message, context.identity(), work.at)
    if tip is None or ref is None or not work.is_last:
        return WorkCommit(id=own, known=(head,))
    if tip == head:
        return WorkCommit(id=own, known=(head,), branch=_moved(context, repository, ref, tip, own))
    if not context.commits.is_ancestor(head, tip):
        return WorkCommit(id=own, known=(head,))
    if not context.commits.trees_since(head, tip).isdisjoint((tree, work.tree)):
        # All of it was committed, and perhaps changed again: by a person who resolved conflicts, for example.
        return WorkCommit(id=tip, known=(tip,))
    merged = context.commits.merge(tip, own)
    if merged.conflicts:
        raise RefusedError(
            f"branch {workspace.branch} has commits since the last snapshot of the files, and they "
            f"conflict with it: {listed(merged.conflicts)}",
            hint=f"merge the branch yourself: git merge {workspace.branch}",
        )
    if merged.tree == scratch.tree_of(tip):
        return WorkCommit(id=tip, known=(tip,))
    both = context.commits.commit(merged.tree, (tip,), work.message, context.identity(), work.at)
    return WorkCommit(id=both, known=(tip,), branch=_moved(context, repository, ref, tip, both))


def _head(context: LandingContext, work: Work) -> str:
    """Return the commit that the snapshot was taken on, or that the workspace began at."""
    workspace = context.workspace
    for commit in (work.head, workspace.base_commit):
        if commit is not None and context.commits.has_commit(commit):
            return commit
    raise WorkspaceError(
        f"the commit that workspace {workspace.id} began at is not in its repository any more",
        hint="apply the changes instead",
    )


def _committed(context: LandingContext, tree: str, head: str) -> str:
    """Return the snapshot as a commit on the head would have it.

    Submodules are those of the head: a snapshot does not look into repositories of their own. `RefusedError` for a
    changed file that a filter of git would convert.
    """
    scratch = context.scratch
    normal = scratch.normalised(tree, context.workspace.base_tree)
    known = scratch.tree_of(head)
    changes = [c for c in scratch.diff(normal, known) if c.old_mode == c.mode == GITLINK]
    result = unfiltered(scratch, scratch.replaced(normal, changes), known, context.filters)
    if result.changed:
        raise RefusedError(
            f"changed files are not committed that a filter of git converts: {listed(result.changed)}",
            hint="commit them in the workspace, where filters run",
        )
    return result.tree


def _moved(
    context: LandingContext, repository: UserRepository, ref: str, old: str, new: str
) -> MovedRef | None:
    """Return how the workspace's branch moves, with an index that agrees; None while something is under way there."""
    worktrees = [tree for tree in repository.worktrees(context.top) if tree.branch == ref]
    moved = MovedRef(common=repository.common, ref=ref, old=old, new=new)
    if not worktrees:
        return moved
    worktree = worktrees[0]
    if len(worktrees) > 1 or worktree.under_way is not None:
        return None
    if not worktree.index.is_file():
        return moved
    staged = context.stage / BRANCH_INDEX
    digest = index_digest(worktree.index)
    shutil.copy2(worktree.index, staged)  # its time says which entries git has to look at again
    context.scratch.run(context.scratch.place(index=staged), "read-tree", "--reset", new)
    return msgspec.structs.replace(
        moved, index=str(worktree.index), index_before=digest, staged_index=BRANCH_INDEX
    )
