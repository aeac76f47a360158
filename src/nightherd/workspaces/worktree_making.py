"""Making the worktree of a workspace: registered in the user's repository, filled by us.

Git registers it without files and locks it. The files are written with our own configuration, and the index of that
checkout is used twice: by git in the worktree, and for snapshots. So the first snapshot costs nothing.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.files.regular import read_regular
from nightherd.model.workspaces.policy import WorkspacePolicy
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace, branch_of
from nightherd.ports import BeginsWith
from nightherd.workspaces.checkout import check_out, restore
from nightherd.workspaces.git import SHORT_S, Place, failure
from nightherd.workspaces.own_repository import Checkout, OwnRepository, checkout_of
from nightherd.workspaces.record import Origin, Record
from nightherd.workspaces.repositories import (
    Repository,
    clear_stale_locks,
    delete_branch_unless_lost,
    find_branch,
    find_commit,
    forget_commits,
    keep_commits,
    locate,
    resolve_base,
    tree_of,
)
from nightherd.workspaces.stores import Store, store_name
from nightherd.workspaces.tools import Tools

PARTIAL = "this is a partial clone that lacks files: clone without --filter, or use mode: copy"


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a worktree is made from."""

    branch: str
    commit: str
    """What is checked out: the tip of its branch."""
    is_new_branch: bool
    base: str | None
    base_commit: str
    base_tree: str

    @property
    def kept_commits(self) -> dict[str, str]:
        """What must not be collected while there are snapshots."""
        return {"base": self.base_commit, "start": self.commit, "head": self.commit}


def make_worktree(
    tools: Tools,
    record: Record,
    workspace: Workspace,
    policy: WorkspacePolicy,
    begins_with: BeginsWith | None,
) -> tuple[Origin, Snapshot, list[str]]:
    """Make the worktree, from nothing or from what a killed process left."""
    repository = locate(tools.git, workspace.root)
    worktree = checkout_of(tools.git, workspace, repository.common_dir, record.top)
    worktree.check_not_copied()
    store = _store(tools, repository, workspace, begins_with)
    plan = _plan(tools, repository, workspace, policy, begins_with)
    clear_stale_locks(repository.common_dir, workspace.id, plan.branch)
    try:
        worktree.register(plan.branch, plan.commit, is_new_branch=plan.is_new_branch)
        tools.probe("workspace.registered")
        keep_commits(tools.git, repository.common_dir, workspace.id, plan.kept_commits)
        tools.probe("workspace.commits_kept")
        _fill(tools, record, repository, worktree, store, plan.commit)
        if begins_with is not None:
            restore(tools.git, store, begins_with.tree, record.top, record.draft)
            tools.probe("workspace.restored")
        notes = _ensure_prefix(record.top, repository.prefix) + _filter_notes(record.top, policy)
    except WorkspaceError:
        _undo(tools, record, repository, worktree, plan, workspace)
        raise
    origin = Origin(
        origin="base" if begins_with is None else "snapshot",
        store=store.name,
        top=str(record.top),
        prefix=repository.prefix,
        common_dir=repository.common_dir,
        branch=plan.branch,
        base=plan.base,
        base_commit=plan.base_commit,
        base_tree=plan.base_tree,
    )
    record.finish(origin)
    tools.probe("workspace.made")
    if begins_with is not None:
        tree = begins_with.tree
    elif plan.commit == plan.base_commit:
        tree = plan.base_tree
    else:
        tree = tree_of(tools.git, repository, plan.commit)
    record.remember(tree, plan.commit, is_unsettled=True)
    return origin, Snapshot(tree=tree, head=plan.commit), notes


def check_worktree(tools: Tools, record: Record, workspace: Workspace, origin: Origin) -> Origin:
    """Repair the registration of a worktree that is there; the state directory or the repository may have moved."""
    repository = locate(tools.git, workspace.root)
    worktree = checkout_of(tools.git, workspace, repository.common_dir, record.top)
    worktree.check_not_copied()
    tools.stores.ensure(origin.store, repository.source)
    if worktree.is_registered:
        worktree.link()
        if isinstance(worktree, OwnRepository):
            _follow_landed(tools, record, repository, worktree, origin)
    else:
        branch = origin.branch or branch_of(workspace.agent, workspace.id)
        tip = find_commit(tools.git, repository, f"refs/heads/{branch}")
        commit = tip or _first_commit(tools, repository, workspace.head, origin.base_commit)
        clear_stale_locks(repository.common_dir, workspace.id, branch)
        worktree.repair(branch, commit, is_new_branch=tip is None)
        _reset_index(tools, record, worktree, origin, commit)
    _ensure_prefix(record.top, origin.prefix)
    return replace(origin, common_dir=repository.common_dir)


def _reset_index(
    tools: Tools, record: Record, worktree: Checkout, origin: Origin, commit: str
) -> None:
    """Give the worktree the index of a commit; its files stay as they are."""
    store = tools.stores.open(origin.store)
    draft = record.folder / "repaired"
    tools.git.run(store.reading(index=str(draft)), "read-tree", commit)
    worktree.write_index(draft)
    draft.unlink(missing_ok=True)


def _follow_landed(
    tools: Tools, record: Record, repository: Repository, own: OwnRepository, origin: Origin
) -> None:
    """Move the branch in a workspace to where a landing moved that of the user's repository."""
    ref = f"refs/heads/{origin.branch}"
    tip, known = find_commit(tools.git, repository, ref), own.tip(ref)
    if tip is None or known is None or tip == known or own.ref != ref:
        return
    place = Place(git_dir=repository.git_dir)
    arguments = ("merge-base", "--is-ancestor", known, tip)
    if tools.git.attempt(place, *arguments, timeout=SHORT_S).status == 0:
        own.move(ref, tip)
        _reset_index(tools, record, own, origin, tip)


def adopt_worktree(tools: Tools, record: Record, workspace: Workspace) -> Origin:
    """Return where a worktree came from whose record was lost, as far as its row and its branch say."""
    repository = locate(tools.git, workspace.root)
    store = _store(tools, repository, workspace, None)
    branch = workspace.branch or branch_of(workspace.agent, workspace.id)
    names = (workspace.base_commit, f"refs/heads/{branch}", "HEAD")
    base = _first_commit(tools, repository, *names)
    return Origin(
        origin="base",
        store=store.name,
        top=str(record.top),
        prefix=repository.prefix,
        common_dir=repository.common_dir,
        branch=branch,
        base=workspace.base,
        base_commit=base,
        base_tree=workspace.base_tree or tree_of(tools.git, repository, base),
    )


def _store(
    tools: Tools, repository: Repository, workspace: Workspace, begins_with: BeginsWith | None
) -> Store:
    name = workspace.store or (begins_with.store if begins_with is not None else None)
    name = name or store_name(repository.common_dir, repository.object_format)
    return tools.stores.ensure(name, repository.source)


def _plan(
    tools: Tools,
    repository: Repository,
    workspace: Workspace,
    policy: WorkspacePolicy,
    begins_with: BeginsWith | None,
) -> _Plan:
    """Decide what is checked out: a branch that is there stays where it is."""
    branch = workspace.branch or branch_of(workspace.agent, workspace.id)
    tip = find_branch(tools.git, repository, branch)
    base, base_commit, base_tree = workspace.base, workspace.base_commit, workspace.base_tree
    if begins_with is not None:
        base, base_commit, base_tree = (
            begins_with.base or base,
            begins_with.base_commit or base_commit,
            begins_with.base_tree or base_tree,
        )
        names = (tip, begins_with.head, base_commit, "HEAD")
        commit = _first_commit(tools, repository, *names)
    elif base_commit is not None and (tip or find_commit(tools.git, repository, base_commit)):
        commit = tip or base_commit
    else:
        resolved = resolve_base(tools.git, repository, policy.base)
        base, commit, base_commit, base_tree = resolved.name, tip or resolved.commit, None, None
    base_commit = base_commit or commit
    return _Plan(
        branch=branch,
        commit=commit,
        is_new_branch=tip is None,
        base=base,
        base_commit=base_commit,
        base_tree=base_tree or tree_of(tools.git, repository, base_commit),
    )


def _first_commit(tools: Tools, repository: Repository, *names: str | None) -> str:
    """The first of these that is still there."""
    for name in names:
        commit = find_commit(tools.git, repository, name) if name is not None else None
        if commit is not None:
            return commit
    message = f"the commits that the workspace began at are gone from '{repository.top}'"
    raise WorkspaceError(message, hint="fetch them again")


def _fill(
    tools: Tools,
    record: Record,
    repository: Repository,
    worktree: Checkout,
    store: Store,
    commit: str,
) -> None:
    try:
        check_out(tools.git, store, commit, record.top, record.draft)
    except WorkspaceError as error:
        if repository.is_partial and not error.can_pass:
            raise WorkspaceError(error.message, hint=PARTIAL) from error
        raise
    tools.probe("workspace.checked_out")
    worktree.write_index(record.draft)
    tools.probe("workspace.indexed")


def _ensure_prefix(top: Path, prefix: str) -> list[str]:
    """Make sure that the agent's directory is there, and in the worktree."""
    directory = top / prefix
    if not directory.resolve().is_relative_to(top.resolve()):
        raise WorkspaceError(f"'{directory}' leads out of the worktree by a link")
    if directory.is_dir():
        return []
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise failure(error, f"'{directory}' cannot be made") from error
    return [f"'{prefix}' is not in the repository at that commit: an empty directory was made"]


def _filter_notes(top: Path, policy: WorkspacePolicy) -> list[str]:
    """Say that files are as the repository has them when a filter, such as Git LFS, should have converted them."""
    try:
        has_filters = b"filter=" in read_regular(top / ".gitattributes")
    except OSError:
        return []
    if not has_filters or policy.setup:
        return []
    return [
        "'.gitattributes' names filters, which do not run when a worktree is made: files of Git LFS are pointers; "
        "add setup: [git lfs pull]"
    ]


def _undo(
    tools: Tools,
    record: Record,
    repository: Repository,
    worktree: Checkout,
    plan: _Plan,
    workspace: Workspace,
) -> None:
    """Leave nothing of a worktree that could not be made; what stays is removed by the next call."""
    with suppress(WorkspaceError):
        record.discard_directory()
        worktree.unregister()
        if plan.is_new_branch:
            git, common_dir = tools.git, repository.common_dir
            clear_stale_locks(common_dir, workspace.id, plan.branch)
            delete_branch_unless_lost(git, common_dir, plan.branch, plan.commit)
            forget_commits(git, common_dir, workspace.id)
