"""The files of workspaces: made, snapshotted, compared, brought home and removed."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.snapshot import Snapshot

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from nightherd.model.workspaces.policy import CloneTerms, SetupCommand, WorkspacePolicy
    from nightherd.model.workspaces.workspace import Workspace

NO_WORKSPACES = "workspaces cannot be made here"


class BeginsWith(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that a new workspace begins with, instead of its base."""

    store: str
    tree: str
    head: str | None = None
    """The commit that its branch begins at; None, or one that is gone: where the base was."""
    base: str | None = None
    base_commit: str | None = None
    base_tree: str | None = None
    """Where the workspace began that the snapshot is of: that is what the work is compared with."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that is there, whole."""

    directory: str
    """Where the agent works in it."""
    origin: str
    """`base`, `snapshot`, `copy`, `empty`: made from that; `kept`: it was there."""
    snapshot: Snapshot
    """What it holds now."""
    store: str
    prefix: str = ""
    branch: str | None = None
    base: str | None = None
    base_commit: str | None = None
    base_tree: str | None = None
    notes: Sequence[str] = ()
    """What a person should know: for example that files were left out."""
    borrowed: Sequence[str] = ()
    """Directories outside of it that are read there: objects of the user's repository, files that people sent."""


class ChangedPath(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs between two snapshots."""

    path: str
    """As the system decodes it: bytes that are not UTF-8 are lone surrogates."""
    status: str
    """`added`, `modified`, `deleted`, `renamed` or `type_changed`."""
    added: int | None = None
    """Lines added; None for a binary file."""
    removed: int | None = None
    old_path: str | None = None


class WorkspaceFiles(Protocol):
    """Makes, snapshots and removes the directories that jobs work in. Nothing in it is about who may."""

    def directory(self, workspace: Workspace) -> str:
        """Return where the agent works in the workspace; there or not."""

    def is_whole(self, workspace: Workspace) -> bool:
        """Whether its directory is there and belongs to it."""

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory on this machine."""

    async def make(
        self, workspace: Workspace, policy: WorkspacePolicy, begins_with: BeginsWith | None = None
    ) -> Made:
        """Make the workspace, or finish one that is half made; one that is whole is only looked at.

        Raises `WorkspaceError` when it cannot be made; then nothing of it is left, or it is finished by the next call.
        """

    async def snapshot(self, workspace: Workspace, policy: WorkspacePolicy) -> Snapshot:
        """Record what its files are now. `WorkspaceError` when that fails: the last snapshot stays as it was."""

    async def remove(self, workspace: Workspace) -> None:
        """Remove its directory, its worktree and, if nothing on it is lost by that, its branch; again if need be."""

    async def clone(self, terms: CloneTerms, root: str) -> Sequence[str]:
        """Clone the repository to `root`, or fetch when it is there; return what a person should know.

        `WorkspaceError` when there is no clone; a fetch that fails is a note.
        """

    def measure(self, workspace: Workspace) -> int:
        """Return the bytes on disk of its directory."""


class NoWorkspaces:
    """Jobs work in their agent's directory only."""

    def directory(self, workspace: Workspace) -> str:
        """Return the directory it is made from: there is no other."""
        return workspace.root

    def is_whole(self, workspace: Workspace) -> bool:
        """Nothing is made here."""
        return False

    def is_directory(self, path: str) -> bool:
        """Nothing is known here."""
        return False

    async def make(
        self, workspace: Workspace, policy: WorkspacePolicy, begins_with: BeginsWith | None = None
    ) -> Made:
        """Refuse."""
        raise WorkspaceError(NO_WORKSPACES)

    async def snapshot(self, workspace: Workspace, policy: WorkspacePolicy) -> Snapshot:
        """Refuse."""
        raise WorkspaceError(NO_WORKSPACES)

    async def remove(self, workspace: Workspace) -> None:
        """Refuse."""
        raise WorkspaceError(NO_WORKSPACES)

    async def clone(self, terms: CloneTerms, root: str) -> Sequence[str]:
        """Refuse."""
        raise WorkspaceError(NO_WORKSPACES)

    def measure(self, workspace: Workspace) -> int:
        """Nothing is made here."""
        return 0


class SetupCache(Protocol):
    """Remembers which setup commands a workspace has had, and keeps what they made for others."""

    def key(self, workspace: Workspace, command: SetupCommand, terms: str = "") -> str:
        """Return what stands for the command, the content of its files in the workspace, and the terms it runs on."""

    def is_done(self, workspace: Workspace, key: str) -> bool:
        """Whether the workspace has had it."""

    async def restore(self, workspace: Workspace, command: SetupCommand, key: str) -> bool:
        """Copy what the command made elsewhere into the workspace; False when that is not kept."""

    async def save(self, workspace: Workspace, command: SetupCommand, key: str) -> None:
        """Remember that the workspace has had it, and keep a copy of what it made."""


class SnapshotReader(Protocol):
    """Compares snapshots; reading only."""

    def changed_paths(
        self, store: str, before: str, after: str, *, other: str | None = None
    ) -> Sequence[ChangedPath]:
        """Return the paths that differ between two trees, in order; renames are found.

        `other` is the store of `after`, if another one.
        """

    def patch(
        self,
        store: str,
        before: str,
        after: str,
        *,
        is_coloured: bool = False,
        other: str | None = None,
    ) -> bytes:
        """Return the difference of two trees as a git patch. `other` is the store of `after`, if another one."""

    def changed_bytes(
        self, store: str, before: str, after: str, *, other: str | None = None
    ) -> int:
        """Return the size of all files that differ between two trees, as they are in both of them."""

    def stat_text(
        self,
        store: str,
        before: str,
        after: str,
        *,
        is_coloured: bool = False,
        other: str | None = None,
    ) -> str:
        """Return the same as a summary with a line for each file."""

    def has(self, store: str, tree: str) -> bool:
        """Whether the store still has the snapshot."""


class GateFiles(Protocol):
    """The files that gates show: in the directories that runs work in, and nowhere else."""

    def directory(self, workspace: Workspace) -> str:
        """Return where the agent works in the workspace; there or not."""

    def read(self, directory: str, path: str) -> str:
        """Return the text of a file in the directory.

        `NotFoundError` without one; `RefusedError` for a path that leads out of it, and for what is not text.
        """

    def write(self, directory: str, path: str, text: str) -> None:
        """Replace a file in the directory, whole or not at all; `RefusedError` for a path that leads out of it."""

    def patch(self, store: str, before: str, after: str, *, other: str | None = None) -> bytes:
        """Return the difference of two snapshots as a git patch."""


class Standing(StrEnum):
    """What is on disk of a workspace."""

    WHOLE = "whole"
    MISSING = "missing"
    HALF_MADE = "half_made"
    HALF_REMOVED = "half_removed"
    BROKEN = "broken"
    """Its directory is there; what git or nightherd keeps about it is not."""


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree in the directory of workspaces that a repository knows."""

    id: str
    root: str
    """A directory in that repository."""
    directory: str


class WorkspaceSurvey(Protocol):
    """What is really there of workspaces; reading only."""

    def standing(self, workspace: Workspace) -> Standing:
        """Return what is there of a workspace."""

    def directories(self) -> Sequence[str]:
        """Return the ids of which there is a directory, whole or half removed."""

    def path(self, workspace_id: str) -> str:
        """Return where the directory of a workspace is, there or not."""

    def registrations(self, roots: Iterable[str]) -> Sequence[Registration]:
        """Return the worktrees of ours that the repositories of `roots` know."""

    def interrupted_landings(self) -> Sequence[str]:
        """Return the records of `apply` and `merge` that were begun and neither finished nor undone."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is merged or pushed: a snapshot, and the commit that is made of it."""

    tree: str
    head: str | None = None
    """The commit that the branch was at when the snapshot was taken."""
    is_last: bool = True
    """Whether nothing has worked in the workspace since, and nothing works in it now; else its branch stays."""
    message: str = ""
    at: datetime
    """The date of the commit."""


class LandingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of applying, merging or pushing."""

    target: str
    """The directory, branch, or remote and branch."""
    paths: Sequence[str] = ()
    """The files that changed there."""
    commit: str | None = None
    branch: str | None = None
    """The branch of the workspace that was merged or pushed."""
    conflicts: Sequence[str] = ()
    """Paths that differ on both sides. Then nothing was changed."""
    url: str | None = None
    """Where a pull request is opened."""
    is_nothing: bool = False
    """Whether there was nothing to do."""
    is_fast_forward: bool = False


class Landing(Protocol):
    """Brings the changes of a workspace to the user's own files, branches and remotes. Only a person asks for it.

    Interrupted at any moment, the next call of any of these finishes what was begun or undoes it.
    With `is_dry_run` nothing is changed: the result says what would be.
    """

    async def apply(
        self, workspace: Workspace, before: str, after: str, *, is_dry_run: bool = False
    ) -> LandingResult:
        """Change the files in `workspace.root` as they changed from the tree `before` to `after`: all, or none."""

    async def merge(
        self,
        workspace: Workspace,
        work: Work,
        *,
        into: str | None = None,
        is_fast_forward: bool = True,
        is_dry_run: bool = False,
    ) -> LandingResult:
        """Merge the work into the branch `into`, else the workspace's base, else what is checked out in its root.

        Without `is_fast_forward` there is a merge commit in any case.
        """

    async def push(
        self,
        workspace: Workspace,
        work: Work,
        *,
        remote: str | None = None,
        login: CloneTerms | None = None,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> LandingResult:
        """Push the work as the workspace's branch to `remote`: a name or an address, else `origin`.

        `login` is what the agent's repository was cloned with: it is used where the remote is the same repository.
        With `is_forced` it replaces what is there, as long as that is what was seen there last.
        """

    async def finish_interrupted(self) -> Sequence[str]:
        """Finish or undo what a killed process left; return what was done."""
