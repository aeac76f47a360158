"""Where the jobs of an agent or a schedule work, as the engine needs it."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.config.schema.workspace import SetupCommand as SetupSchema
from nightherd.config.schema.workspace import WorkingDirectory, WorkspaceSettings
from nightherd.model.workspaces.policy import (
    SHARED,
    CloneTerms,
    Keep,
    SetupCommand,
    WorkspaceMode,
    WorkspacePolicy,
    WorkspaceScope,
)
from nightherd.model.workspaces.repository import Repository


def resolve_workspace(
    directory: WorkingDirectory | None, repository: Repository | None
) -> WorkspacePolicy:
    """What `working_directory` says, gaps filled; an agent that says nothing works in its directory."""
    if directory is None:
        return SHARED
    return resolve_policy(directory, clone=resolve_clone(directory, repository))


def resolve_policy(
    directory: WorkspaceSettings,
    *,
    clone: CloneTerms | None = None,
    scope: WorkspaceScope = WorkspaceScope.JOB,
) -> WorkspacePolicy:
    """What a directory says about its workspaces; `scope` is used where it says none."""
    mode = WorkspaceMode(directory.mode)
    snapshot = directory.snapshot
    policy = WorkspacePolicy(
        mode=mode,
        scope=WorkspaceScope(directory.scope or scope),
        base=directory.base or default_base(mode, clone),
        setup=tuple(resolve_command(one) for one in directory.setup or ()),
        keep=default_keep(mode) if directory.keep is None else Keep(directory.keep),
        clone=clone,
    )
    if snapshot is None:
        return policy
    return replace(policy, snapshot_ignored=snapshot.ignored, largest_file=snapshot.largest_file)


def default_keep(mode: WorkspaceMode) -> Keep:
    """How long a workspace is kept when nothing says: an empty one has nothing to merge into."""
    return Keep.ALWAYS if mode is WorkspaceMode.EMPTY else Keep.UNTIL_MERGED


def default_base(mode: WorkspaceMode, clone: CloneTerms | None) -> str | None:
    """Where a worktree of a clone begins: at the branch as it was fetched."""
    is_cloned = mode is WorkspaceMode.WORKTREE and clone is not None
    return f"origin/{clone.branch}" if is_cloned and clone is not None else None


def resolve_command(command: SetupSchema) -> SetupCommand:
    """One command that prepares a workspace."""
    return SetupCommand(
        run=command.run, files=command.files, paths=command.paths, timeout=command.timeout
    )


def resolve_clone(directory: WorkingDirectory, repository: Repository | None) -> CloneTerms | None:
    """What the directory is cloned from, if it is."""
    branch, depth = directory.default_branch, directory.clone_depth
    if not directory.auto_clone or repository is None:
        return None
    return CloneTerms(
        url=repository.url,
        branch=branch,
        depth=depth,
        username=repository.username,
        password=repository.password,
    )
