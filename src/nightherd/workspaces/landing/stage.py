"""Staging: the user's files as they are, as a tree to merge with; and as they will be, as files to put in their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.text import counted, quote
from nightherd.workspaces.landing.files import (
    ABSENT,
    FileChanges,
    PathChange,
    copy_file,
    files_below,
    image_at,
    mode_after,
    obstacle_above,
)
from nightherd.workspaces.landing.scratch import GITLINK, NO_MODE, Scratch, TreeChange

SHOWN = 5
"""How many paths an error names."""


def check_paths(top: Path, paths: Iterable[str], protected: Sequence[Path]) -> None:
    """`RefusedError` for a path that no landing may write: inside a git directory, or among nightherd's own files."""
    for path in paths:
        parts = path.split("/")
        if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
            raise RefusedError(f"the changes have a file that cannot be written: {quote(path)}")
        place = top / path
        for directory in protected:
            if place == directory or directory in place.parents:
                message = f"the changes have a file in nightherd's own directory: {quote(path)}"
                raise RefusedError(message, hint="remove it from the workspace")


def submodules_in(changes: Iterable[TreeChange]) -> list[str]:
    """Return the changed paths that are repositories of their own: those are brought home by hand."""
    return [change.path for change in changes if GITLINK in (change.old_mode, change.mode)]


def read_files(scratch: Scratch, top: Path, tree: str, paths: Iterable[str], folder: Path) -> str:
    """Copy the files at `paths` below `folder`; return the tree with what they are now.

    What is in the place of a directory above them is part of it, so that a merge meets it.
    """
    wanted = set(paths)
    wanted |= {above for path in wanted if (above := obstacle_above(top, path)) is not None}
    present, absent = [], []
    for path in sorted(wanted):
        image = image_at(top, path)
        if image.kind == "other":
            raise RefusedError(f"{quote(str(top / path))} is neither a file nor a directory")
        if image == ABSENT:
            absent.append(path)
        else:
            copy_file(top, path, folder)
            present.append(path)
    folder.mkdir(exist_ok=True)
    return scratch.with_files(scratch.new_index(tree), present, folder, absent)


def occupied_directories(top: Path, changes: Sequence[TreeChange]) -> list[str]:
    """Return the paths where a file is to be written and a directory has files that are not part of the changes."""
    removed = {change.path for change in changes if change.mode == NO_MODE}
    written = [change.path for change in changes if change.mode != NO_MODE]
    places = [path for path in written if (top / path).is_dir() and not (top / path).is_symlink()]
    return [path for path in places if not removed.issuperset(files_below(top, path))]


def stage_files(
    scratch: Scratch, top: Path, tree: str, changes: Sequence[TreeChange], files: FileChanges
) -> tuple[PathChange, ...]:
    """Write the changed files as `tree` has them to where they are staged; return what becomes of each path.

    The files as they are have been copied before (`read_files`). Permissions stay, but for the executable bit.
    """
    written = [change.path for change in changes if change.mode != NO_MODE]
    scratch.check_out(scratch.new_index(tree), written, files.afters)
    staged = []
    for change in changes:
        before, after = image_at(files.befores, change.path), image_at(files.afters, change.path)
        if change.mode != NO_MODE and after == ABSENT:
            raise WorkspaceError(f"{quote(change.path)} cannot be checked out")
        if before.kind == after.kind == "file":
            mode = (files.befores / change.path).stat().st_mode
            kept = mode_after(mode, is_executable=after.is_executable)
            (files.afters / change.path).chmod(kept)
        staged.append(PathChange(path=change.path, before=before, after=after))
    return tuple(staged)


def listed(paths: Sequence[str]) -> str:
    """Return some paths for an error: the first few, and how many more there are."""
    text = ", ".join(quote(path, limit=200) for path in paths[:SHOWN])
    more = len(paths) - SHOWN
    return f"{text} and {counted(more, 'other')}" if more > 0 else text
