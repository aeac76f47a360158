"""Files that a filter of git converts, such as Git LFS: the repository has something else than the disk.

No filter runs here, so a changed file of that kind cannot be committed. One that did not change is recognised: what the
repository has of it names the SHA-256 of its content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from nightherd.workspaces.git import split
from nightherd.workspaces.landing.scratch import FILES, Scratch, TreeChange, joined

POINTER = re.compile(
    rb"version https://[^\n]+\n(?:ext-[^\n]+\n)*oid sha256:(?P<digest>[0-9a-f]{64})\nsize [0-9]+\n"
)
LONGEST_POINTER = 1024


class Unfiltered(NamedTuple):
    """A tree in which files that did not change are what the repository has of them."""

    tree: str
    changed: Sequence[str]
    """Files that a filter converts and that did change, or may have."""


def unfiltered(scratch: Scratch, tree: str, reference: str, filters: frozenset[str]) -> Unfiltered:
    """Compare a tree, whose files are as on disk, with one that the repository has."""
    changes = [c for c in scratch.diff(tree, reference) if c.old_mode in FILES] if filters else []
    changes = _filtered(scratch, tree, changes, filters) if changes else []
    if not changes:
        return Unfiltered(tree, ())
    folder = scratch.new_folder()
    index = scratch.new_index(tree)
    scratch.check_out(index, [change.path for change in changes], folder, is_raw=True)
    pointed = scratch.new_folder()
    known = [change.path for change in changes if change.mode in FILES]
    scratch.check_out(scratch.new_index(reference), known, pointed, is_raw=True)
    same = [change for change in changes if _is_same(folder, pointed, change)]
    rest = [change.path for change in changes if change not in same]
    return Unfiltered(scratch.replaced(tree, same), rest)


def _filtered(
    scratch: Scratch, tree: str, changes: Sequence[TreeChange], filters: frozenset[str]
) -> list[TreeChange]:
    place = scratch.place(index=scratch.new_index(tree))
    arguments = ("check-attr", "--cached", "-z", "--stdin", "filter")
    data = joined(change.path for change in changes)
    fields = split(scratch.run(place, *arguments, data=data))
    values = dict(zip(fields[::3], fields[2::3], strict=True))
    return [change for change in changes if values.get(change.path) in filters]


def _is_same(folder: Path, pointed: Path, change: TreeChange) -> bool:
    """Whether the content is the one that the repository's version names."""
    path = pointed / change.path
    if change.mode not in FILES or path.stat().st_size > LONGEST_POINTER:
        return False
    pointer = POINTER.fullmatch(path.read_bytes())
    if pointer is None:
        return False
    with (folder / change.path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest().encode() == pointer["digest"]
