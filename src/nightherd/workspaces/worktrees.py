"""Worktree: how a workspace is registered as a worktree in the user's repository.

Git keeps a directory for it, `<repository>/worktrees/<id>`, that names the worktree's directory, and the `.git` file
there names it in turn. It is locked, so `git worktree prune` leaves it alone.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from nightherd.errors import StateError, WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.regular import read_regular
from nightherd.workspaces.git import SHORT_S, Argument, Git, Place, failure
from nightherd.workspaces.record import remove_tree
from nightherd.workspaces.repositories import COMMIT, registering

SYMBOLIC = re.compile(r"ref: (refs/heads/[^\0\n]+)\n?")
PARKING = ".repairing"
ADD = ("worktree", "add", "--quiet", "--no-checkout", "--lock")
PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4)
UNFINISHED = re.compile(rb"/worktrees/[^/\n]+/")
"""Git reads the directories of all worktrees, and fails while somebody else is registering one."""


class Worktree:
    """The registration of one workspace, there or not."""

    def __init__(self, git: Git, common_dir: str, top: Path) -> None:
        self._git, self._common_dir, self._top = git, common_dir, top
        self.admin = Path(common_dir) / "worktrees" / top.name

    @property
    def is_registered(self) -> bool:
        """Whether git has a directory for it that is whole."""
        return all((self.admin / name).is_file() for name in ("HEAD", "gitdir", "commondir"))

    @property
    def original(self) -> Path | None:
        """The directory that it is registered for, when that is another one and still there: this one is a copy."""
        other = self._registered_directory()
        if other is None or _is_same(other, self._top):
            return None
        # Otherwise the state directory was moved: what was there is here now.
        return other if _linked(other / ".git") == self.admin.resolve() else None

    def check_not_copied(self) -> None:
        """Raise `WorkspaceError` when this directory is a copy of the one that is registered."""
        original = self.original
        if original is not None:
            raise WorkspaceError(
                f"the workspace '{self._top}' is a copy: git knows it as '{original}', which is there too",
                hint=f"use the original state directory, remove '{original}' if that is the copy, or, if the state "
                "directory was moved, move the directory of workspaces beside it too",
            )

    def register(self, branch: str, commit: str, *, is_new_branch: bool) -> None:
        """Register it on its branch, without any files. Leftovers of a registration are removed first."""
        self._add(self._top, branch, commit, is_new_branch=is_new_branch)

    def repair(self, branch: str, commit: str, *, is_new_branch: bool) -> None:
        """Register a directory that is there, and make both sides name each other; its files stay as they are."""
        if not self.is_registered:
            parking = self._top.parent / PARKING / self._top.name
            try:
                remove_tree(parking)
                self._add(parking, branch, commit, is_new_branch=is_new_branch)
                remove_tree(parking)
            except OSError as error:
                message = f"the worktree '{self._top}' cannot be registered again"
                raise failure(error, message) from error
        self.link()

    def link(self) -> None:
        """Make git's directory and the worktree name each other."""
        dot_git = self._top / ".git"
        try:
            if self._registered_directory() != self._top:
                atomic_write_file(self.admin / "gitdir", os.fsencode(f"{dot_git}\n"), mode=0o644)
            if dot_git.is_symlink() or _linked(dot_git) != self.admin.resolve():
                _move_aside(dot_git)
                content = os.fsencode(f"gitdir: {self.admin}\n")
                atomic_write_file(dot_git, content, mode=0o644)
        except (OSError, StateError) as error:
            raise failure(error, f"the worktree '{self._top}' cannot be linked") from error

    def unregister(self) -> None:
        """Remove git's directory of it, whole or not."""
        with registering(self._common_dir):
            self._discard()

    def _discard(self) -> None:
        """Remove git's directory: moved out of the others first, which git reads all of, whole or not."""
        removing = Path(self._common_dir) / f"nightherd-removing-{self._top.name}"
        try:
            remove_tree(removing)
            if os.path.lexists(self.admin):
                self.admin.rename(removing)
                remove_tree(removing)
        except OSError as error:
            raise failure(error, f"'{self.admin}' cannot be removed") from error
        # The directory around it stays, though it may be empty: another process may be about to use it.

    def head(self) -> str | None:
        """Return the commit that is checked out in it; None when there is none."""
        symbolic = SYMBOLIC.fullmatch(self._line(self.admin / "HEAD"))
        if symbolic is not None:
            commit = self._line(Path(self._common_dir) / symbolic[1]).removesuffix("\n")
            if COMMIT.fullmatch(commit):
                return commit
        done = self._git.attempt(
            Place(git_dir=self._common_dir), "rev-parse", "--verify", "--quiet", "--end-of-options",
            f"worktrees/{self._top.name}/HEAD^{{commit}}", timeout=SHORT_S,
        )  # fmt: skip
        commit = done.out.decode(errors="replace").strip()
        return commit if done.status == 0 and COMMIT.fullmatch(commit) else None

    def write_index(self, draft: Path) -> None:
        """Copy an index that matches the commit checked out. It keeps its time: git judges by that what is racy."""
        target = self.admin / ".index.nightherd"
        try:
            shutil.copyfile(draft, target)
            status = draft.stat()
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            target.replace(self.admin / "index")
        except OSError as error:
            raise failure(error, f"the index of '{self._top}' cannot be written") from error

    def _add(self, top: Path, branch: str, commit: str, *, is_new_branch: bool) -> None:
        reason = f"nightherd: workspace {self._top.name}"
        place = Place(git_dir=self._common_dir)
        with registering(self._common_dir):
            for pause in (*PAUSES_S, None):
                self._discard()
                where = ("-b", branch, top, commit) if is_new_branch else (top, branch)
                arguments: tuple[Argument, ...] = (*ADD, "--reason", reason, *where)
                done = self._git.attempt(place, *arguments, timeout=SHORT_S)
                if done.status == 0:
                    return
                if pause is None or not UNFINISHED.search(done.err):
                    doing = f"the worktree '{self._top}' cannot be registered"
                    raise self._git.error(done, place, arguments, doing)
                time.sleep(pause)
                is_new_branch = is_new_branch and not self._has(branch)

    def _has(self, branch: str) -> bool:
        arguments = ("show-ref", "--verify", "--quiet", f"refs/heads/{branch}")
        return self._git.attempt(Place(git_dir=self._common_dir), *arguments).status == 0

    def _registered_directory(self) -> Path | None:
        """The directory that git knows for it; None when it knows none."""
        named = self._line(self.admin / "gitdir").removesuffix("\n")
        if not named:
            return None
        return Path(os.path.normpath(self.admin / named)).parent

    @staticmethod
    def _line(path: Path) -> str:
        try:
            return os.fsdecode(read_regular(path))
        except OSError:
            return ""


def _is_same(directory: Path, other: Path) -> bool:
    """Whether two paths lead to one directory, also by links."""
    try:
        return directory == other or directory.samefile(other)
    except OSError:
        return False


def _linked(dot_git: Path) -> Path | None:
    """What a `.git` file names; None when it is none."""
    try:
        text = os.fsdecode(read_regular(dot_git))
    except OSError:
        return None
    prefix, _, named = text.partition(": ")
    if prefix != "gitdir":
        return None
    return (dot_git.parent / named.removesuffix("\n")).resolve()


def _move_aside(dot_git: Path) -> None:
    """Keep what stands in the place of a `.git` file: it may be a repository with work in it."""
    if not os.path.lexists(dot_git) or (dot_git.is_file() and not dot_git.is_symlink()):
        return
    number = 1
    while os.path.lexists(aside := dot_git.with_name(f".git.replaced-{number}")):
        number += 1
    dot_git.rename(aside)
