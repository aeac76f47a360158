"""Survey: what is really on disk of workspaces, for checks of a state directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.files.regular import read_regular
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Registration, Standing
from nightherd.workspaces.git import Git
from nightherd.workspaces.own_repository import OwnRepository, checkout_of
from nightherd.workspaces.record import Record
from nightherd.workspaces.repositories import locate

PASSING = (".removing", ".making")
"""What the name of a directory ends with that is being removed or made."""


class LocalSurvey:
    """Looks at the directories of workspaces and at their registrations; changes nothing."""

    def __init__(self, state_dir: Path, git: Git) -> None:
        self._state_dir, self._git = state_dir, git
        self._directories = Record(state_dir, "none").directories

    def standing(self, workspace: Workspace) -> Standing:
        """Return what is there of a workspace."""
        record = Record(self._state_dir, workspace.id)
        if not record.has_directory:
            return Standing.HALF_REMOVED if record.removing.exists() else Standing.MISSING
        if record.is_half_made:
            return Standing.HALF_MADE
        if not record.is_made:
            return Standing.BROKEN
        origin = record.origin()
        if origin is not None and origin.common_dir is not None:
            checkout = checkout_of(self._git, workspace, origin.common_dir, record.top)
            is_linked = isinstance(checkout, OwnRepository) or (record.top / ".git").is_file()
            if not checkout.is_registered or not is_linked:
                return Standing.BROKEN
        return Standing.WHOLE

    def directories(self) -> Sequence[str]:
        """Return the ids of which there is a directory, whole or half removed."""
        try:
            names = sorted(entry.name for entry in os.scandir(self._directories))
        except OSError:
            return ()
        return sorted({_id(name) for name in names if not name.startswith(".")})

    def path(self, workspace_id: str) -> str:
        """Return where the directory of a workspace is, there or not."""
        return str(Record(self._state_dir, workspace_id).top)

    def registrations(self, roots: Iterable[str]) -> Sequence[Registration]:
        """Return the worktrees below the directory of workspaces that the repositories of `roots` know."""
        known: dict[str, str] = {}
        for root in roots:
            if not Path(root).is_dir():
                continue
            try:
                known.setdefault(locate(self._git, root).common_dir, root)
            except WorkspaceError:
                continue  # no repository any more
        return [one for common_dir, root in known.items() for one in self._of(common_dir, root)]

    def interrupted_landings(self) -> Sequence[str]:
        """Return the paths of the records of landings that are not over."""
        return sorted(str(path) for path in (self._state_dir / "landing").glob("*.json"))

    def _of(self, common_dir: str, root: str) -> Iterator[Registration]:
        folder = Path(common_dir) / "worktrees"
        if not folder.is_dir():
            return
        for admin in sorted(folder.iterdir()):
            try:
                named = os.fsdecode(read_regular(admin / "gitdir")).removesuffix("\n")
            except OSError:
                continue
            directory = Path(os.path.normpath(admin / named)).parent
            if directory.parent == self._directories:
                yield Registration(id=directory.name, root=root, directory=str(directory))


def _id(name: str) -> str:
    for ending in PASSING:
        name = name.removesuffix(ending)
    return name
