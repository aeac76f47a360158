"""Merge: the commit of a workspace, merged into a branch of the user; the directory that has it checked out follows."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.ports.workspaces import LandingResult, Work
from nightherd.workspaces.landing.checkout import Prepared, find_worktree, prepare
from nightherd.workspaces.landing.context import LandingContext
from nightherd.workspaces.landing.record import LandingRecord, MovedRef
from nightherd.workspaces.landing.repository import HEADS
from nightherd.workspaces.landing.work_commit import WorkCommit, work_commit


class MergeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How to merge."""

    into: str | None
    is_fast_forward: bool
    is_dry_run: bool


def merge(context: LandingContext, work: Work, terms: MergeTerms) -> LandingResult | None:
    """Merge the work; None when the branch moved meanwhile, and it is to be tried again from the start."""
    scratch, repository = context.scratch, context.known_repository()
    ref = _target(context, terms.into)
    name = ref.removeprefix(HEADS)
    old = repository.tip(ref)
    if old is None:
        raise WorkspaceError(f"branch {name} is gone", hint="choose another with --into")
    commit = work_commit(context, work)
    result = LandingResult(target=name, branch=context.workspace.branch, commit=old)
    if context.commits.is_ancestor(commit.id, old):
        return msgspec.structs.replace(result, is_nothing=True)
    if not context.commits.has_common_history(commit.id, old):
        message = (
            f"branch {name} has no history in common with the workspace {context.workspace.id}"
        )
        raise RefusedError(message, hint="choose another branch with --into")
    is_fast_forward = terms.is_fast_forward and context.commits.is_ancestor(old, commit.id)
    if is_fast_forward:
        new, tree = commit.id, scratch.tree_of(commit.id)
    else:
        merged = context.commits.merge(old, commit.id)
        if merged.conflicts:
            return msgspec.structs.replace(result, conflicts=merged.conflicts)
        tree = merged.tree
        message = _merge_message(context, name, work)
        new = context.commits.commit(
            tree, (old, commit.id), message, context.identity(), context.now()
        )
    paths = tuple(change.path for change in scratch.diff(scratch.tree_of(old), tree))
    if not paths:
        return msgspec.structs.replace(result, is_nothing=True)
    moved = MovedRef(common=repository.common, ref=ref, old=old, new=new)
    worktree = find_worktree(context, ref)
    prepared = Prepared(moved=moved) if worktree is None else prepare(context, worktree, moved)
    result = msgspec.structs.replace(
        result, commit=new, paths=paths, is_fast_forward=is_fast_forward
    )
    if terms.is_dry_run:
        return result
    bring_objects(context, new, (old, *commit.known))
    record = _record(context, name, prepared, commit)
    is_done = context.finisher.merge(record, worktree, context.identity())
    return result if is_done else None


def bring_objects(context: LandingContext, commit: str, known: tuple[str, ...]) -> None:
    """Add the commit to the user's repository, where no ref names it yet."""
    pack = context.commits.pack(commit, known)
    if pack is not None:
        context.known_repository().add_pack(pack)
    context.probe("landing.after_objects")


def _record(
    context: LandingContext, name: str, prepared: Prepared, commit: WorkCommit
) -> LandingRecord:
    return LandingRecord(
        id=context.id,
        store=context.store,
        target=name,
        top=prepared.top,
        changes=prepared.changes,
        moved=prepared.moved,
        branch=commit.branch,
    )


def _target(context: LandingContext, into: str | None) -> str:
    """Return the branch to merge into: the one named, else the base of the workspace, else what is checked out."""
    repository, workspace = context.known_repository(), context.workspace
    if into is not None:
        ref = into if into.startswith(HEADS) else f"{HEADS}{into}"
        if repository.tip(ref) is None:
            message = f"there is no branch {into!r} in '{Path(repository.common)}'"
            raise WorkspaceError(message, hint=f"make it: git branch {into}")
        return _checked(context, ref)
    if workspace.base is not None:
        ref = f"{HEADS}{workspace.base.removeprefix(HEADS)}"
        if repository.tip(ref) is not None:
            return _checked(context, ref)
    here = [
        tree.branch
        for tree in repository.worktrees(context.top)
        if tree.directory.resolve() == context.top
    ]
    if here and here[0] is not None and repository.tip(here[0]) is not None:
        return _checked(context, here[0])
    base = f"base {workspace.base!r} of workspace {workspace.id} is no local branch"
    raise WorkspaceError(
        f"{base}, and no branch is checked out in '{context.top}'",
        hint="choose a branch with --into",
    )


def _checked(context: LandingContext, ref: str) -> str:
    if ref == f"{HEADS}{context.workspace.branch}":
        raise RefusedError(f"{ref.removeprefix(HEADS)} is the branch of the workspace itself")
    if context.known_repository().is_symbolic(ref):
        message = f"{ref.removeprefix(HEADS)} is another name of a branch"
        raise RefusedError(message, hint="name the branch itself with --into")
    return ref


def _merge_message(context: LandingContext, name: str, work: Work) -> str:
    what = f"branch '{context.workspace.branch}'" if context.workspace.branch else "work"
    return f"Merge {what} into {name}\n\n{work.message}"
