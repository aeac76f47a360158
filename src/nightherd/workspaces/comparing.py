"""Comparing snapshots: what differs between two trees, as paths, as a patch and as a summary.

Reads only objects and our own configuration: no external diff, no text conversion, no colours of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.ports import ChangedPath
from nightherd.workspaces.git import Argument, Git, Place, split
from nightherd.workspaces.stores import Store, Stores

STATUSES = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "type_changed"}
PLAIN = ("--no-ext-diff", "--no-textconv", "--find-renames", "-r")
MOST_RENAMES = "-l2000"
"""More candidates than that are not compared with each other: it takes the square of their number."""


class GitSnapshots:
    """Compares snapshots in the stores of a state directory."""

    def __init__(self, state_dir: Path, git: Git | None = None) -> None:
        self._stores, self._git = Stores(state_dir), git or Git()

    def changed_paths(
        self, store: str, before: str, after: str, *, other: str | None = None
    ) -> Sequence[ChangedPath]:
        """Return the paths that differ between two trees, in order; renames are found."""
        place = self._place(store, other)
        options = (*PLAIN, MOST_RENAMES, "-z", "--raw", "--numstat", "--no-abbrev")
        out = self._diff(place, *options, before, after)
        return _changed_paths(split(out))

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
        colour = "--color=always" if is_coloured else "--color=never"
        options = (*PLAIN, MOST_RENAMES, "--patch", "--binary", colour)
        return self._diff(self._place(store, other), *options, before, after)

    def changed_bytes(
        self, store: str, before: str, after: str, *, other: str | None = None
    ) -> int:
        """Return the size of all files that differ between two trees, as they are in both of them."""
        place = self._place(store, other)
        options = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
        changes = split(self._diff(place, *options, before, after))[::2]
        blobs = [blob for change in changes for blob in change.split(" ")[2:4] if blob.strip("0")]
        data = "".join(f"{blob}\n" for blob in blobs).encode()
        out = self._git.run(place, "cat-file", "--batch-check=%(objectsize)", data=data)
        # Else a commit of a submodule: that is not here.
        return sum(int(size) for size in out.split(b"\n") if size.isdigit())

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
        colour = "--color=always" if is_coloured else "--color=never"
        options = (*PLAIN, MOST_RENAMES, "--stat=100", "--summary", colour)
        out = self._diff(self._place(store, other), *options, before, after)
        return out.decode(errors="replace")

    def has(self, store: str, tree: str) -> bool:
        """Whether the store still has the snapshot, with all its directories."""
        try:
            place = self._place(store, None)
        except WorkspaceError:
            return False
        return self._git.attempt(place, "ls-tree", "-r", "-d", "-z", tree).status == 0

    def _place(self, store: str, other: str | None) -> Place:
        place = self._stores.open(store).reading()
        if other is None or other == store:
            return place
        second: Store = self._stores.open(other)
        return replace(place, alternates=(f"{second.path}/objects",))

    def _diff(self, place: Place, *arguments: Argument) -> bytes:
        doing = "two snapshots cannot be compared"
        return self._git.run(place, "diff-tree", *arguments, doing=doing)


def _changed_paths(fields: Sequence[str]) -> list[ChangedPath]:
    """All `:<mode> <mode> <blob> <blob> <status>` with their paths come first, then all numbers of lines."""
    entries: list[tuple[str, str, str | None]] = []
    position = 0
    while position < len(fields) and fields[position].startswith(":"):
        status = fields[position].rpartition(" ")[2][:1]
        if status == "R":
            entries.append((status, fields[position + 2], fields[position + 1]))
            position += 3
        else:
            entries.append((status, fields[position + 1], None))
            position += 2
    changed = []
    for status, path, old_path in entries:
        added, removed, _ = fields[position].split("\t", 2)
        position += 3 if old_path is not None else 1
        changed.append(
            ChangedPath(
                path=path,
                status=STATUSES.get(status, "modified"),
                added=None if added == "-" else int(added),
                removed=None if removed == "-" else int(removed),
                old_path=old_path,
            )
        )
    return changed
