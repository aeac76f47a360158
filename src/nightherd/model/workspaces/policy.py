"""WorkspacePolicy: what an agent or a schedule says about where its jobs work."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import msgspec


class WorkspaceMode(StrEnum):
    """How a job gets the directory it works in."""

    SHARED = "shared"
    """Every job works in the agent's directory itself."""
    WORKTREE = "worktree"
    """A git worktree on a branch of its own."""
    CLONE = "clone"
    """A worktree for a container: a repository of its own, since a worktree's git directory must not be reached from
    inside. Nobody configures it: see `in_place_of`."""
    COPY = "copy"
    """A copy of the directory."""
    EMPTY = "empty"
    """An empty directory."""

    @property
    def has_branch(self) -> bool:
        """Whether it is made from a commit of a repository, on a branch of its own."""
        return self in (WorkspaceMode.WORKTREE, WorkspaceMode.CLONE)

    def in_place_of(self, *, is_contained: bool) -> WorkspaceMode:
        """The mode of an agent that is configured with this one, in a container or on the host."""
        if not self.has_branch:
            return self
        return WorkspaceMode.CLONE if is_contained else WorkspaceMode.WORKTREE


class WorkspaceScope(StrEnum):
    """What a workspace belongs to."""

    JOB = "job"
    SESSION = "session"
    RUN = "run"
    """A job with all jobs below it, or a workflow run."""


class Keep(StrEnum):
    """How long a workspace is kept once nothing works in it any more."""

    ALWAYS = "always"
    """Until a person removes it."""
    ON_FAILURE = "on_failure"
    """Removed when its last job succeeded; kept when it failed or was cancelled."""
    UNTIL_MERGED = "until_merged"
    """Until its changes are applied, merged or pushed, or there are none."""
    NEVER = "never"
    """Removed when its last job has ended."""


LARGEST_FILE = 50 * 1024 * 1024
"""Bytes of the largest file that a snapshot holds when nothing else is said."""


class SetupCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that prepares a workspace before the agent works in it."""

    run: str
    files: tuple[str, ...] = ()
    """Files, relative to the workspace, whose content decides whether it has to run again."""
    paths: tuple[str, ...] = ()
    """What it makes, relative to the workspace: kept, and copied into other workspaces with the same files."""
    timeout: timedelta = timedelta(minutes=10)


class CloneTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Which repository the agent's directory is a clone of."""

    url: str
    """Without credentials."""
    branch: str = "main"
    depth: int = 1
    """Commits to clone; 0 for all."""
    username: str | None = None
    password: str | None = None
    """A secret: never in argv, on disk, in a log or an error."""

    def __repr__(self) -> str:
        return f"CloneTerms(url={self.url!r}, branch={self.branch!r}, depth={self.depth})"


class WorkspacePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Where jobs work, from what that is made, and how long it is kept."""

    mode: WorkspaceMode = WorkspaceMode.SHARED
    scope: WorkspaceScope = WorkspaceScope.JOB
    base: str | None = None
    """The branch, tag or commit a worktree begins at; None for what is checked out in the directory."""
    setup: tuple[SetupCommand, ...] = ()
    keep: Keep = Keep.UNTIL_MERGED
    snapshot_ignored: bool = False
    """Whether snapshots hold files that git ignores."""
    largest_file: int = LARGEST_FILE
    """Bytes above which a file is left out of snapshots."""
    clone: CloneTerms | None = None
    """What the directory is cloned from when it is missing; None for a directory that is there."""

    @property
    def is_shared(self) -> bool:
        """Whether jobs work in the agent's directory itself."""
        return self.mode is WorkspaceMode.SHARED


SHARED = WorkspacePolicy()
"""Every job works in the agent's directory."""
