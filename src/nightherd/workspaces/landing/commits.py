"""Commits: the history that a landing reads, merges and adds to, in its scratch objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from nightherd.workspaces.git import split
from nightherd.workspaces.landing.scratch import Scratch

CONFLICTS = 1
"""The exit status of a merge that has some."""


class Merged(NamedTuple):
    """The tree that a merge results in; not to be used when paths conflict."""

    tree: str
    conflicts: Sequence[str]


class Identity(NamedTuple):
    """Who makes commits."""

    name: str
    email: str


NOBODY = Identity("nightherd", "nightherd@localhost")
"""Who makes commits when the user's git does not know the user."""


class Commits:
    """Commits that a landing can see."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def has_commit(self, commit: str) -> bool:
        """Whether the commit is there."""
        arguments = ("cat-file", "-e", f"{commit}^{{commit}}")
        return self._scratch.attempt(self._scratch.place(), *arguments).status == 0

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Whether `other` has `commit` in its history."""
        arguments = ("merge-base", "--is-ancestor", commit, other)
        done = self._scratch.attempt(self._scratch.place(), *arguments)
        if done.status not in (0, 1):
            raise self._scratch.error(done, arguments)
        return done.status == 0

    def trees_since(self, commit: str, other: str) -> set[str]:
        """Return the trees of the commits that `other` has and `commit` has not."""
        arguments = ("rev-list", "--format=%T", other, f"^{commit}")
        lines = self._scratch.run(self._scratch.place(), *arguments).decode().splitlines()
        return {line for line in lines if not line.startswith("commit ")}

    def has_common_history(self, commit: str, other: str) -> bool:
        """Whether two commits have an ancestor in common."""
        return self._scratch.attempt(self._scratch.place(), "merge-base", commit, other).status == 0

    def merge_trees(self, base: str, ours: str, theirs: str) -> Merged:
        """Merge two trees that began as `base`."""
        if base in (ours, theirs):
            return Merged(theirs if base == ours else ours, ())
        at = datetime.fromtimestamp(0, UTC)
        root = self.commit(base, (), "base", NOBODY, at)
        sides = [self.commit(tree, (root,), side, NOBODY, at) for tree, side in ((ours, "ours"), (theirs, "theirs"))]  # fmt: skip
        return self.merge(*sides)

    def merge(self, ours: str, theirs: str) -> Merged:
        """Merge two commits that have some history in common."""
        arguments = ("-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "-z",
                     "--name-only", "--no-messages", ours, theirs)  # fmt: skip
        done = self._scratch.attempt(self._scratch.place(), *arguments)
        if done.status not in (0, CONFLICTS):
            raise self._scratch.error(done, arguments, "the merge cannot be computed")
        tree, *paths = split(done.out)
        if done.status == 0:
            return Merged(tree, ())
        return Merged(tree, sorted({_original(path, (ours, theirs)) for path in paths}) or ("",))

    def commit(
        self, tree: str, parents: Sequence[str], message: str, identity: Identity, at: datetime
    ) -> str:
        """Make a commit; the same arguments make the same commit."""
        date = f"@{int(at.timestamp())} +0000"
        variables = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", identity.name), ("EMAIL", identity.email), ("DATE", date))
        }
        arguments = ["commit-tree", tree]
        for parent in parents:
            arguments += ["-p", parent]
        data = message.strip().encode(errors="replace") + b"\n"
        return (
            self._scratch.run(self._scratch.place(), *arguments, data=data, variables=variables)
            .decode()
            .strip()
        )

    def pack(self, commit: str, known: Sequence[str]) -> Path | None:
        """Pack what the history of `commit` has and that of `known` has not; None when that is nothing."""
        wanted = "\n".join([commit, *(f"^{other}" for other in known)]) + "\n"
        arguments = (
            "pack-objects",
            "--revs",
            "--non-empty",
            "-q",
            str(self._scratch.stage / "pack"),
        )
        name = (
            self._scratch.run(self._scratch.place(), *arguments, data=wanted.encode())
            .decode()
            .strip()
        )
        return self._scratch.stage / f"pack-{name}.pack" if name else None


def _original(path: str, commits: Iterable[str]) -> str:
    """Return the path that a conflict is about; git renames a file that is in the way of a directory."""
    for commit in commits:
        before, mark, _ = path.rpartition(f"~{commit}")
        if mark:
            return before
    return path
