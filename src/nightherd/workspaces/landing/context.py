"""LandingContext: what one landing works with, from its lock to its last file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports.world import Probe
from nightherd.workspaces.git import Git
from nightherd.workspaces.landing.commits import Commits, Identity
from nightherd.workspaces.landing.filters import unfiltered
from nightherd.workspaces.landing.finish import Finisher
from nightherd.workspaces.landing.record import LandingRecords
from nightherd.workspaces.landing.repository import UserRepository
from nightherd.workspaces.landing.scratch import Scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingContext:
    """One landing, or one attempt at it, of one workspace."""

    id: str
    git: Git
    """Its commands hold the store's lock."""
    workspace: Workspace
    records: LandingRecords
    scratch: Scratch
    repository: UserRepository | None
    """None for a workspace that is not a worktree."""
    top: Path
    """The directory that trees are of: the agent's, or the top of its repository."""
    protected: tuple[Path, ...]
    """Directories of nightherd's own, in which no landing writes."""
    filters: frozenset[str]
    """The names of the filters that the user's git has, such as `lfs`."""
    identity: Callable[[], Identity]
    now: Callable[[], datetime]
    probe: Probe

    @property
    def stage(self) -> Path:
        """The directory for its files."""
        return self.records.stage(self.id)

    @property
    def commits(self) -> Commits:
        """The commits it can see, and makes."""
        return Commits(self.scratch)

    @property
    def finisher(self) -> Finisher:
        """Carries out what is recorded."""
        return Finisher(self.git, self.records, self.probe)

    @property
    def store(self) -> str:
        """The name of the store that has the snapshots."""
        return self.id.partition("-")[0]

    def committable(self, tree: str) -> str:
        """Return a snapshot as a commit would have it, as far as that is possible without running filters."""
        base = self.workspace.base_tree
        if self.repository is None or base is None:
            return tree
        return self.known_files(self.scratch.normalised(tree, base), base)

    def known_files(self, tree: str, reference: str) -> str:
        """Return the tree with what `reference` has of files that a filter converts and that did not change."""
        return unfiltered(self.scratch, tree, reference, self.filters).tree

    def known_repository(self) -> UserRepository:
        """Return the repository; `WorkspaceError` where there is none to merge into."""
        if self.repository is None:
            raise WorkspaceError(
                f"workspace {self.workspace.id} is no git worktree (mode: {self.workspace.mode})",
                hint="apply the changes instead",
            )
        return self.repository


def top_of(workspace: Workspace) -> Path:
    """Return the directory that the trees of a workspace are of. `WorkspaceError` when it is gone."""
    root = Path(workspace.root).resolve()
    parts = [part for part in workspace.prefix.split("/") if part]
    if root.parts[len(root.parts) - len(parts) :] != tuple(parts):
        raise WorkspaceError(
            f"'{root}' is no longer the directory '{workspace.prefix}' of its repository",
            hint="bring the directory back to where it was",
        )
    top = root.parents[len(parts) - 1] if parts else root
    if not top.is_dir():
        raise WorkspaceError(f"there is no directory '{top}'")
    return top
