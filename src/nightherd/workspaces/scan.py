"""Scan: which files of a work tree differ from an index, and which of these a snapshot can hold.

Names come from git, which knows what is ignored. Every file is then looked at before it is read: an agent may have put
anything there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from nightherd.errors import WorkspaceError
from nightherd.workspaces.git import TIMEOUT_S, Argument, Git, Output, Place, split
from nightherd.workspaces.stores import Store

WATCH_S = 30.0
"""After so long it is checked whether git waits for a pipe."""
GITLINK = "160000"
READ_BY_GIT = (".gitignore", ".gitattributes", ".gitmodules")
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
UNREADABLE = re.compile(
    rb"warning: could not open directory '(.*?)': |^(.+): Permission denied$",
    re.MULTILINE | re.DOTALL,
)


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the index has, and that is not as the index says."""

    path: str
    mode: str
    """Its mode in the index."""
    blob: str
    """Its content in the index."""
    is_deleted: bool


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from the index."""

    tracked: Sequence[Tracked] = ()
    untracked: Sequence[str] = ()
    unreadable: Sequence[str] = ()


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be done to the index."""

    removed: Sequence[str] = ()
    added: Sequence[Tracked | str] = ()
    left_out: Sequence[str] = ()


class WorkTree(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a workspace, beside the index of its snapshots."""

    git: Git
    store: Store
    top: Path
    index: Path
    exclude: Path | None = None
    """A file with patterns to ignore, besides those in the tree."""
    has_ignored: bool = False
    """Whether ignored files count as well."""
    largest_file: int

    @property
    def reading(self) -> Place:
        """Where files are compared with all objects."""
        return self.store.reading(work_tree=str(self.top), index=str(self.index))

    @property
    def writing(self) -> Place:
        """Where files become objects that are kept."""
        return self.store.writing(work_tree=str(self.top), index=str(self.index))

    @property
    def checkout(self) -> Place:
        """Where files are compared the way a checkout writes them."""
        return self.store.checkout(work_tree=str(self.top), index=str(self.index))

    def scan(self) -> Scan | Output:
        """Return what differs from the index; how git ended, if it could not say."""
        ignored: tuple[Argument, ...] = () if self.has_ignored else ("--exclude-standard",)
        if self.exclude is not None and not self.has_ignored and _is_file(self.exclude):
            ignored = (*ignored, f"--exclude-from={self.exclude}")
        commands: tuple[tuple[Place, Sequence[Argument]], ...] = (
            # Never looks into repositories below: those have configuration of their own.
            (self.checkout, ("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty")),
            (self.reading, ("ls-files", "-z", "--others", *ignored)),
        )  # fmt: skip
        outputs = self.git.attempt_together(*commands, timeout=WATCH_S)
        if any(output.is_timed_out for output in outputs):
            self._check_pipes()
            outputs = self.git.attempt_together(*commands, timeout=TIMEOUT_S)
        for output in outputs:
            if output.status != 0:
                return output
        changes, others = outputs
        return Scan(
            tracked=_tracked(split(changes.out)),
            untracked=split(others.out),
            unreadable=_unreadable(changes.err) + _unreadable(others.err),
        )

    def attempt(self, place: Place, *arguments: Argument, data: bytes | None = None) -> Output:
        """Run a command that reads files; `WorkspaceError` when it would wait for a pipe for ever."""
        output = self.git.attempt(place, *arguments, data=data, timeout=WATCH_S)
        if output.is_timed_out:
            self._check_pipes()
            output = self.git.attempt(place, *arguments, data=data, timeout=TIMEOUT_S)
        return output

    def select(self, scan: Scan, refused: Collection[str] = ()) -> Update:
        """Return what a snapshot takes of a scan; `refused` are files that git could not take."""
        removed: list[str] = []
        added: list[Tracked | str] = []
        left_out: list[str] = list(scan.unreadable)
        for change in scan.tracked:
            if change.is_deleted:
                removed.append(change.path)
            elif change.path not in refused and self._fits(change.path, change.mode):
                added.append(change)
            else:
                left_out.append(change.path)
        for path in scan.untracked:
            if path not in refused and self._fits(path):
                added.append(path)
            else:
                left_out.append(path)
        return Update(removed=removed, added=added, left_out=left_out)

    def _fits(self, path: str, mode: str | None = None) -> bool:
        """Whether a snapshot can hold the file. One that is gone meanwhile fits: git removes it from the index."""
        if path.endswith("/"):
            return False  # a repository of its own
        full = self.top / path
        try:
            status = full.lstat()
            if stat.S_ISLNK(status.st_mode):
                return True
            if stat.S_ISDIR(status.st_mode):
                return mode == GITLINK
            if not stat.S_ISREG(status.st_mode) or status.st_size > self.largest_file:
                return False
            os.close(os.open(full, READ))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return True

    def _check_pipes(self) -> None:
        """Raise `WorkspaceError` when a file that git reads is no file: it would wait for it for ever."""
        for folder, folders, names in os.walk(self.top):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = Path(folder, name)
                if name in READ_BY_GIT and not _is_file(path) and not path.is_symlink():
                    message = f"'{path}' is not a file: git would wait for it for ever"
                    raise WorkspaceError(message, hint="remove it")


def _tracked(fields: Sequence[str]) -> list[Tracked]:
    """The raw format: `:<mode> <mode> <blob> <blob> <status>`, then the path."""
    changes = []
    for meta, path in zip(fields[::2], fields[1::2], strict=True):
        mode, _, blob, _, status = meta[1:].split(" ")
        changes.append(Tracked(path=path, mode=mode, blob=blob, is_deleted=status == "D"))
    return changes


def _unreadable(err: bytes) -> list[str]:
    return [os.fsdecode(found[1] or found[2]) for found in UNREADABLE.finditer(err)]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
