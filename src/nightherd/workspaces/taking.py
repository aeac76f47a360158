"""Snapshots of a workspace: what its files are now, and the commit that its branch is at."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.model.text import whole_text
from nightherd.model.workspaces.policy import WorkspacePolicy
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace, branch_of
from nightherd.workspaces.bring_commits import bring_commits, move_branch
from nightherd.workspaces.landing.repository import has_commit
from nightherd.workspaces.own_repository import OwnRepository, checkout_of
from nightherd.workspaces.record import Origin, Record
from nightherd.workspaces.repositories import keep_commits
from nightherd.workspaces.scan import WorkTree
from nightherd.workspaces.snapshots import take
from nightherd.workspaces.stores import Store
from nightherd.workspaces.tools import Tools
from nightherd.workspaces.worktree_making import check_worktree


def snapshot(tools: Tools, workspace: Workspace, policy: WorkspacePolicy) -> Snapshot:
    """Take a snapshot of a workspace that is made."""
    record = tools.record(workspace.id)
    with tools.owning(record) as owned:
        origin = record.origin()
        if origin is None or not record.has_directory:
            message = f"there are no files to snapshot: '{record.top}' is not there"
            raise WorkspaceError(message)
        if origin.common_dir is not None and not Path(origin.common_dir).is_dir():
            # The user moved the repository; what it is found by is the workspace's root.
            origin = check_worktree(owned, record, workspace, origin)
            record.write_origin(origin)
        return snapshot_now(owned, record, workspace, policy, origin)


def snapshot_now(
    tools: Tools, record: Record, workspace: Workspace, policy: WorkspacePolicy, origin: Origin
) -> Snapshot:
    """The same for one that this process owns."""
    store = tools.stores.open(origin.store)
    work_tree = work_tree_of(tools, record, policy, store, origin.common_dir)
    last = record.last()
    known = workspace.tree or origin.base_tree
    taken = take(work_tree, last=last, known_tree=known, probe=tools.probe)
    head = kept = last.head if last is not None else None
    if origin.common_dir is not None:
        checkout = checkout_of(tools.git, workspace, origin.common_dir, record.top)
        found = checkout.head()
        if found is not None and found != kept:
            # The files matter more: a commit that could not be kept is tried again by the next snapshot.
            with suppress(WorkspaceError):
                if isinstance(checkout, OwnRepository):
                    bring_home(tools, record, workspace, origin, checkout, found)
                keep_commits(tools.git, origin.common_dir, workspace.id, {"head": found})
                kept = found
        # One of its own repository that could not be brought home is no commit that anybody can use.
        head = kept if isinstance(checkout, OwnRepository) else found
    tools.probe("snapshot.head_kept")
    if last is None or (last.tree, last.head) != (taken.tree, kept) or taken.changed or (
        last.is_unsettled != taken.is_unsettled
    ):  # fmt: skip
        record.remember(taken.tree, kept, is_unsettled=taken.is_unsettled)
    tools.probe("snapshot.remembered")
    left_out = tuple(map(whole_text, taken.left_out))
    return Snapshot(tree=taken.tree, head=head, changed=taken.changed, left_out=left_out)


def bring_home(
    tools: Tools,
    record: Record,
    workspace: Workspace,
    origin: Origin,
    own: OwnRepository,
    head: str,
) -> None:
    """Bring a commit of the workspace's own repository to the user's, and let the branch there follow."""
    common_dir, last = origin.common_dir, record.last()
    assert common_dir is not None  # noqa: S101 (asked by the callers)
    kept = last.head if last is not None else None
    names = dict.fromkeys(name for name in (kept, origin.base_commit) if name is not None)
    known = [name for name in names if has_commit(tools.git, common_dir, name)]
    bring_commits(tools, record, own, common_dir, head, known)
    branch = origin.branch or branch_of(workspace.agent, workspace.id)
    if own.ref == f"refs/heads/{branch}":
        move_branch(tools.git, common_dir, branch, head, kept)
    tools.probe("commits.branch_moved")


def work_tree_of(
    tools: Tools, record: Record, policy: WorkspacePolicy, store: Store, common_dir: str | None
) -> WorkTree:
    """Return the files of a workspace, as its policy wants them snapshotted."""
    return WorkTree(
        git=tools.git,
        store=store,
        top=record.top,
        index=record.index,
        exclude=Path(common_dir) / "info" / "exclude" if common_dir is not None else None,
        has_ignored=policy.snapshot_ignored,
        largest_file=policy.largest_file,
    )
