"""Upstream: a repository elsewhere, the clone that nightherd makes of it, and all that either holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from nightherd.model.workspaces.policy import CloneTerms
from nightherd.ports import Probe, no_probe
from nightherd.workspaces.clones import clone_or_fetch
from nightherd.workspaces.git import Git
from nightherd.workspaces.stores import Stores
from nightherd.workspaces.tools import Tools
from workspaces.scene import commit, git, new_repository


@dataclass
class Upstream:
    """A repository that is cloned to `root` from its `file` address, or from `terms`."""

    folder: Path
    terms: CloneTerms

    @property
    def path(self) -> Path:
        return self.folder / "upstream"

    @property
    def root(self) -> Path:
        return self.folder / "work" / "clone"

    @property
    def staging(self) -> Path:
        return self.folder / "work" / "clone.cloning"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def tools(self, probe: Probe = no_probe) -> Tools:
        return Tools(state_dir=self.state, git=Git(), stores=Stores(self.state), probe=probe)

    def clone(self, **changes: object) -> list[str]:
        """Clone or fetch."""
        return clone_or_fetch(self.tools(), replace(self.terms, **changes), str(self.root))

    def commit(self, name: str = "news.txt", text: str = "news\n") -> str:
        """A commit on what is checked out upstream."""
        return commit(self.path, {name: text})

    def origin(self) -> dict[str, str]:
        """The branches of `origin` that the clone knows, with their commits."""
        shown = git(
            self.root, "for-each-ref", "--format=%(refname:strip=3) %(objectname)", "refs/remotes"
        )
        rows = (line.split(" ") for line in shown.splitlines())
        return {name: one for name, one in rows if name != "HEAD"}

    def branches(self) -> dict[str, str]:
        """The branches upstream."""
        shown = git(
            self.path, "for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/heads"
        )
        return dict(line.split(" ") for line in shown.splitlines())


def terms_of(url: str) -> CloneTerms:
    """Terms with nothing but an address."""
    return CloneTerms(url=url)


def new_upstream(folder: Path, commits: int = 3) -> Upstream:
    """An upstream with some commits on `main` and a branch `side`."""
    path = folder / "upstream"
    new_repository(path)
    for number in range(1, commits):
        commit(path, {"README.md": f"{number}\n"}, f"commit {number}")
    git(path, "branch", "side")
    return Upstream(folder, CloneTerms(url=path.as_uri()))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path from there; links as what they name."""
    seen = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            is_link = path.is_symlink()
            seen[str(path.relative_to(folder))] = (
                os.fsencode(path.readlink()) if is_link else path.read_bytes()
            )
    return seen
