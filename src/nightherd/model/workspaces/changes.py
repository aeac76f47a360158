"""Changes of workspaces."""

from __future__ import annotations

from datetime import datetime

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.workspaces.workspace import Landed, Workspace, WorkspaceId


class UseWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """A job works in a workspace from now on; one that is not known yet is recorded before it is made.

    `directory` is where the agent works in it: the job's session is there from now on.
    Refused while an open job of another session, or outside of `shares`, works in it.
    """

    job_id: JobId
    epoch: int
    workspace: Workspace
    """As it is to be recorded when it is new, or was removed and is made again."""
    directory: str
    at: datetime
    shares: tuple[JobId, ...] = ()
    """Jobs that may work in it at the same time: a job with all jobs below it."""
    run_id: str | None = None
    """The workflow run whose jobs, and those of runs below it, may work in it at the same time."""


class LeaveWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """A job works in its agent's directory, and its session does so again after a time in a workspace."""

    job_id: JobId
    epoch: int
    directory: str


class MoveWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """The project was moved: the directory that a workspace is made from is elsewhere now, and so is its own."""

    workspace_id: WorkspaceId
    expected: str
    """Where `root` was; with another one there is nothing to do any more."""
    root: str
    directory: str
    """Where the agent works in it now."""


class NoteWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files of a workspace: it is made, or a job of it has ended."""

    workspace_id: WorkspaceId
    at: datetime
    job_id: JobId | None = None
    epoch: int | None = None
    """With `job_id`: refused once another execution has the job."""
    is_made: bool = False
    """Whether it is ready to be worked in."""
    store: str | None = None
    prefix: str | None = None
    branch: str | None = None
    base: str | None = None
    base_commit: str | None = None
    base_tree: str | None = None
    tree: str | None = None
    head: str | None = None
    left_out: int | None = None
    size_bytes: int | None = None


class LandWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a workspace up to the snapshot `tree` were applied, merged or pushed."""

    workspace_id: WorkspaceId
    tree: str
    how: Landed
    at: datetime


class RemoveWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """Remove the directory of a workspace: recorded before anything is deleted, and again when it is gone.

    Refused while an open job works in it, and when it was used after `unused_since`. Its snapshots stay.
    """

    workspace_id: WorkspaceId
    at: datetime
    is_gone: bool = False
    unused_since: datetime | None = None
    tree: str | None = None
    """The snapshot that was taken for the removal; None for the last that is known."""
    head: str | None = None
    left_out: int | None = None
