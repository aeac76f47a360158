"""Which directories git reads for a work tree, found without running git: nothing there can name a program."""

from __future__ import annotations

import os
from pathlib import Path

from nightherd.files.regular import read_regular

DEPTH = 5
"""How far git follows the alternates of alternates."""
GITDIR = "gitdir: "


def git_directories(directory: str) -> tuple[str, ...]:
    """What git keeps about a work tree: the `.git` at its top, and the repository of a worktree.

    Whoever can write the work tree can write a `.git` that names any directory. So a repository elsewhere counts only where
    it names this work tree in turn, and objects that one borrows do not count: they may be named by the same hand.
    """
    own = Path(directory) / ".git"
    if not os.path.lexists(own):
        return ()
    git_dir = None if own.is_dir() else _named(own)
    if git_dir is None or not (git_dir / "HEAD").is_file():
        return (str(own),)
    common_dir = _line(git_dir / "commondir")
    back = _line(git_dir / "gitdir")
    if not common_dir or not back or not _is_same(git_dir / back, own):
        return (str(own),)
    common = Path(os.path.normpath(git_dir / common_dir))
    if not (common / "objects").is_dir() or git_dir.parent != common / "worktrees":
        return (str(own),)
    return (str(own), str(common))


def alternates(objects: Path, depth: int = DEPTH) -> tuple[str, ...]:
    """The directories whose objects `objects` borrows, and those that they borrow in turn."""
    if depth == 0:
        return ()
    found: dict[str, None] = {}
    for line in _text(objects / "info" / "alternates").split("\n"):
        if not line or line.startswith(
            ("#", '"')
        ):  # quoted: a name with a line end, which nothing mounts
            continue
        other = Path(os.path.normpath(objects / line))
        if other.is_dir():
            found.update(dict.fromkeys((str(other), *alternates(other, depth - 1))))
    return tuple(found)


def _named(dot_git: Path) -> Path | None:
    line = _line(dot_git)
    if not line.startswith(GITDIR):
        return None
    return Path(os.path.normpath(dot_git.parent / line.removeprefix(GITDIR)))


def _line(path: Path) -> str:
    return _text(path).removesuffix("\n")


def _text(path: Path) -> str:
    try:
        return os.fsdecode(read_regular(path))
    except OSError:
        return ""


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
