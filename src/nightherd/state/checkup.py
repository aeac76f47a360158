"""Checkup: what can be wrong with a state directory's files and its disk."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from nightherd.errors import RefusedError
from nightherd.files.atomic import TEMP_NAME, YOUNGEST_STALE
from nightherd.files.permission import keep_aside
from nightherd.model.disk_space import DiskSpace
from nightherd.model.doctor import Finding, Level
from nightherd.model.units import format_size
from nightherd.ports import Clock
from nightherd.state import layout
from nightherd.state.agreement import ROOM
from nightherd.state.directory import MOUNTS, StateDirectory, filesystem_of, is_network_filesystem
from nightherd.state.rebuild import REBUILT

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
STALE_S = YOUNGEST_STALE.total_seconds()
STALE_COPY_S = 3600.0
"""A younger copy of the database may belong to a doctor that is still at it."""

Found = tuple[Path, os.stat_result]


class Usage(Protocol):
    """How full a disk is."""

    @property
    def total(self) -> int: ...
    @property
    def free(self) -> int: ...


class Checkup:
    """Looks at the files of one state directory; changes nothing."""

    def __init__(
        self,
        root: Path,
        *,
        mounts: Path = MOUNTS,
        disk_usage: Callable[[Path], Usage] = shutil.disk_usage,
        can_use: Callable[[Path], bool] | None = None,
    ) -> None:
        self._directory = StateDirectory(root=root)
        self._mounts = mounts
        self._disk_usage = disk_usage
        self._can_use = can_use or _can_use

    def directory(self) -> Iterator[Finding]:
        """Directories that are missing."""
        for path in self._directory.directories:
            if path.is_dir():
                continue
            is_link = path.is_symlink() and not path.exists()
            is_free = not is_link and not path.exists()
            if is_link:
                message = f"{path} is a link to {path.readlink()}, which does not exist"
                remedy = "restore its target (is a disk not mounted?), or remove the link"
            elif is_free:
                message, remedy = f"{path} is missing", "it is created"
            else:
                message, remedy = f"{path} is where a directory should be", "move it away"
            yield Finding(
                check="directory",
                level=Level.PROBLEM,
                message=message,
                path=str(path),
                remedy=remedy,
                is_fixable=is_free,
            )

    def permissions(self) -> Iterator[Finding]:
        """What others can read, for it holds prompts and answers; what its owner cannot use, or we cannot."""
        for path, found in self._everything():
            wanted = PRIVATE_DIRECTORY if stat.S_ISDIR(found.st_mode) else PRIVATE_FILE
            mode = stat.S_IMODE(found.st_mode)
            if mode & 0o777 & ~wanted or mode & wanted != wanted:
                yield Finding(
                    check="permissions",
                    level=Level.WARNING if mode & wanted == wanted else Level.PROBLEM,
                    message=f"{path} has mode {mode:04o}; {wanted:04o} keeps it to its owner",
                    path=str(path),
                    remedy=f"chmod {wanted:o}",
                    is_fixable=True,
                )
            elif not stat.S_ISSOCK(found.st_mode) and not self._can_use(path):
                yield Finding(
                    check="permissions",
                    level=Level.PROBLEM,
                    message=f"{path} belongs to {_name(found.st_uid)}, and you have no permission to use it",
                    path=str(path),
                    remedy=f"give it to the user who runs nightherd: chown -R USER {self._directory.root}",
                )

    def temp_files(self, now: datetime) -> Iterator[Finding]:
        """Temporary files that a killed writer left, and copies of the database that a killed doctor left."""
        for path, found in sorted(self._everything()):
            is_directory = stat.S_ISDIR(found.st_mode)
            age = now.timestamp() - found.st_mtime
            if TEMP_NAME.fullmatch(path.name) and not is_directory and age >= STALE_S:
                what = "was left by a killed writer; the file itself is complete"
            elif self._is_copy(path, is_directory=is_directory) and age >= STALE_COPY_S:
                what = "was left by a doctor that was killed; the database is not part of it"
            else:
                continue
            yield Finding(
                check="temp-files",
                level=Level.WARNING,
                message=f"{path} {what}",
                path=str(path),
                remedy="it is deleted",
                is_fixable=True,
            )

    def filesystem(self) -> Iterator[Finding]:
        """A filesystem on which locks do not hold."""
        kind = filesystem_of(self._directory.root, self._mounts)
        if is_network_filesystem(kind):
            yield Finding(
                check="filesystem",
                level=Level.PROBLEM,
                message=f"the state directory is on a network filesystem ({kind}): locks do not hold there",
                path=str(self._directory.root),
                remedy="move it to a local disk (--state-dir)",
            )

    def disk(self) -> Iterator[Finding]:
        """A disk that is full, or nearly."""
        usage = self._disk_usage(self._directory.root)
        level = DiskSpace(free=usage.free, total=usage.total).level
        if level is not Level.OK:
            yield Finding(
                check="disk",
                level=level,
                message=f"{format_size(usage.free)} of {format_size(usage.total)} are free",
                path=str(self._directory.root),
                remedy="make room: jobs fail when their journal cannot be written",
            )

    def _is_copy(self, path: Path, *, is_directory: bool) -> bool:
        if path.parent != self._directory.root:
            return False
        return path.name.startswith(ROOM) if is_directory else path.name.startswith(REBUILT)

    def _everything(self) -> Iterator[Found]:
        """Every file and directory, the root first. Links are passed over: what they name is not ours.

        What is in the directories for files of others is passed over too: git's objects are read-only, what a
        setup command made may be a program, and files of a container belong to its user.
        """
        root = self._directory.root
        others = {root / name for name in layout.OTHERS}
        yield root, root.stat()
        pending = [root]
        while pending:
            try:
                entries = sorted(os.scandir(pending.pop()), key=lambda entry: entry.name)
            except OSError:
                continue  # its own mode is what was found
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone since it was listed, or hidden by its directory's mode
                if entry.is_symlink():
                    continue
                path = Path(entry.path)
                yield path, found
                if stat.S_ISDIR(found.st_mode) and path not in others:
                    pending.append(path)


def _can_use(path: Path) -> bool:
    """Whether we may read and write it, or it is ours to make so; a disk that is read-only is another matter."""
    try:
        return os.access(path, os.R_OK | os.W_OK) or path.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return True  # a writer has replaced or removed it since it was listed


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


SIDE_FILES = tuple(f"{layout.DATABASE}{suffix}" for suffix in ("-wal", "-shm"))
"""SQLite's own, which it opens only where they are: a link in their place stops it."""

ENDINGS = {
    "": (".lock", ".json", ".yaml", layout.DATABASE, *SIDE_FILES, layout.GITIGNORE),
    layout.JOBS: (".jsonl", ".yaml"),
    layout.LEDGER: (".jsonl",),
    layout.SESSIONS: (".json", ".context"),
    layout.LOGS: (".log",),
}
"""How the names of files end, by the directory they are in; no directory is called so."""

SOCKET = ".sock"
ASIDE = ".corrupt-"
"""In the names of what was put aside before."""


def intruders(root: Path) -> Iterator[Finding]:
    """Directories, pipes and devices in the place of a file, and links in the place of SQLite's own."""
    pending = [root]
    others = {str(root / name) for name in layout.OTHERS}
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue  # the checks of directories and permissions say why
        for entry in entries:
            kind = _kind(root, entry)
            if kind is not None:
                yield _found(Path(entry.path), kind)
            elif entry.is_symlink():
                yield from _away(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False) and entry.path not in others:
                pending.append(Path(entry.path))


async def put_aside(root: Path, clock: Clock, finding: Finding) -> None:
    """Keep what was found under another name; what belongs there is created when it is needed."""
    path = Path(finding.path or "")
    if not path.is_relative_to(root):
        raise RefusedError(f"{path} is not in the state directory")
    keep_aside(path, clock.now())


def _kind(root: Path, entry: os.DirEntry[str]) -> str | None:
    """What the entry is, if that is wrong where it is."""
    folder = os.path.relpath(os.path.dirname(entry.path), root)  # noqa: PTH120 - a path object per entry costs more than the scan
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return None  # gone since it was listed
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return "a link" if folder == "." and entry.name in SIDE_FILES else None
    if stat.S_ISDIR(mode):
        endings = ENDINGS.get("" if folder == "." else folder, ())
        return "a directory" if entry.name.endswith(endings) else None
    is_known = entry.name.endswith(SOCKET) or ASIDE in entry.name
    return None if is_known else "a pipe or a device"


def _away(path: Path) -> Iterator[Finding]:
    """A user's link to a file that cannot be recreated: its target may only be unmounted."""
    if path.name.endswith((".jsonl", layout.DATABASE)) and not path.exists():
        yield Finding(
            check="files",
            level=Level.PROBLEM,
            message=f"{path} is a link to {path.readlink()}, which does not exist",
            path=str(path),
            remedy="restore its target (is a disk not mounted?), or remove the link",
        )


def _found(path: Path, kind: str) -> Finding:
    return Finding(
        check="files",
        level=Level.PROBLEM,
        message=f"{path} is {kind}, where a file should be",
        path=str(path),
        remedy="it is kept aside",
        is_fixable=True,
    )
