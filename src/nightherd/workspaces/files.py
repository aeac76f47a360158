"""The files of workspaces on this machine, as the engine sees them. Everything slow runs in a thread."""

from __future__ import annotations

import threading
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from nightherd.model.workspaces.policy import CloneTerms, WorkspacePolicy
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import BeginsWith, Made, Probe
from nightherd.ports.world import no_probe
from nightherd.workspaces.clones import clone_or_fetch
from nightherd.workspaces.copies import disk_bytes
from nightherd.workspaces.git import Git
from nightherd.workspaces.making import make
from nightherd.workspaces.removing import remove
from nightherd.workspaces.stores import Stores
from nightherd.workspaces.taking import snapshot
from nightherd.workspaces.tools import Tools


class LocalWorkspaceFiles:
    """Directories beside the state directory; snapshots in it."""

    def __init__(self, state_dir: Path, *, git: Git | None = None, probe: Probe = no_probe) -> None:
        self._tools = Tools(
            state_dir=state_dir.absolute(),
            git=git or Git(),
            stores=Stores(state_dir),
            probe=probe,
        )

    def directory(self, workspace: Workspace) -> str:
        """Return where the agent works in the workspace; there or not."""
        return str(self._tools.record(workspace.id).top / workspace.prefix)

    def is_whole(self, workspace: Workspace) -> bool:
        """Whether its directory is there and was made to its end."""
        record = self._tools.record(workspace.id)
        return record.is_made and record.has_directory

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory on this machine."""
        return Path(path).is_dir()

    async def make(
        self, workspace: Workspace, policy: WorkspacePolicy, begins_with: BeginsWith | None = None
    ) -> Made:
        """Make the workspace, or finish one that is half made; one that is whole is only looked at.

        Raises `WorkspaceError` when it cannot be made; then nothing of it is left, or it is finished by the next call.
        """
        return await to_thread.run_sync(make, self._tools, workspace, policy, begins_with)

    async def snapshot(self, workspace: Workspace, policy: WorkspacePolicy) -> Snapshot:
        """Record what its files are now. `WorkspaceError` when that fails: the last snapshot stays as it was."""
        return await to_thread.run_sync(snapshot, self._tools, workspace, policy)

    async def remove(self, workspace: Workspace) -> None:
        """Remove its directory, its worktree and, if nothing on it is lost by that, its branch; again if need be."""
        await to_thread.run_sync(remove, self._tools, workspace)

    async def clone(self, terms: CloneTerms, root: str) -> list[str]:
        """Clone the repository to `root`, or fetch when it is there; return what a person should know.

        `WorkspaceError` when there is no clone; a fetch that fails is a note. Cancelling it stops git.
        """
        stopped = threading.Event()
        tools = replace(self._tools, git=self._tools.git.stopping(stopped.is_set))
        try:
            return await to_thread.run_sync(
                clone_or_fetch, tools, terms, root, abandon_on_cancel=True
            )
        finally:
            stopped.set()

    def measure(self, workspace: Workspace) -> int:
        """Return the bytes on disk of its directory."""
        return disk_bytes(self._tools.record(workspace.id).top)
