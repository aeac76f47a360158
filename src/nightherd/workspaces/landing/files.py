"""Files of a landing: what is at a path, and replacing many files so that a kill on the way can be finished or undone.

No symbolic link below the top is followed: a path is opened one directory at a time. Each file is replaced by a rename,
and only where it still is what it was, or what it will be; what somebody else changed is left alone.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

import msgspec

from nightherd.ports.world import Probe

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
EXECUTABLE = 0o111
IN_THE_WAY = (errno.ENOTDIR, errno.ELOOP)
"""Opening a directory fails with one of these where a file or a symbolic link is in its place."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """What is at a path. Directories are not part of it: a directory counts as nothing."""

    kind: str = "absent"
    """`absent`, `file`, `link`, or `other` for a device, a pipe or a socket."""
    digest: str = ""
    """The SHA-256 of the content, or of what the link names."""
    is_executable: bool = False


ABSENT = Image()


class PathChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a landing makes of one path."""

    path: str
    before: Image
    after: Image


class ChangedMeanwhile(Exception):
    """Somebody changed a file while it was about to be replaced."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


@contextmanager
def folder_of(top: Path, path: str, *, makes: bool = False) -> Iterator[tuple[int, str]]:
    """Open the directory that `path` is in; yield its descriptor and the file's name in it.

    With `makes`, directories that are missing are made. `OSError` where one is a symbolic link or no directory.
    """
    *parents, name = path.split("/")
    folder = os.open(top, DIRECTORY)
    try:
        for part in parents:
            if makes:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def image_at(top: Path, path: str) -> Image:
    """Return what is at the path now; a path below a file or a symbolic link is absent."""
    try:
        with folder_of(top, path) as (folder, name):
            mode = os.lstat(name, dir_fd=folder).st_mode
            if stat.S_ISDIR(mode):
                return ABSENT
            if stat.S_ISLNK(mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                return Image(kind="link", digest=sha256(target).hexdigest())
            if not stat.S_ISREG(mode):
                return Image(kind="other")
            with os.fdopen(os.open(name, READ, dir_fd=folder), "rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
            return Image(kind="file", digest=digest, is_executable=bool(mode & 0o100))
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        if error.errno in IN_THE_WAY:
            return ABSENT
        raise


def obstacle_above(top: Path, path: str) -> str | None:
    """Return the file or symbolic link that is where a directory above `path` would be; None when there is none."""
    parents = path.split("/")[:-1]
    for depth in range(1, len(parents) + 1):
        above = "/".join(parents[:depth])
        try:
            mode = os.lstat(top / above).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(mode):
            return above
    return None


def files_below(top: Path, path: str) -> list[str]:
    """Return every file and empty directory below the directory at `path`, if there is one; links are not followed."""
    paths: list[str] = []
    for folder, folders, names in os.walk(top / path):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        paths += [str(Path(folder, name).relative_to(top)) for name in (*names, *links)]
        if not folders and not names and Path(folder) != top / path:
            paths.append(str(Path(folder).relative_to(top)))
    return paths


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes below `top`, and the files as they were and will be, staged in a directory of ours."""

    top: Path
    stage: Path
    changes: Sequence[PathChange]
    probe: Probe

    @property
    def befores(self) -> Path:
        """Where the files are staged as they were, by their paths."""
        return self.stage / "before"

    @property
    def afters(self) -> Path:
        """Where the files are staged as they will be, by their paths."""
        return self.stage / "after"

    def put(self, *, is_back: bool = False, is_strict: bool = False) -> list[str]:
        """Make every path what it will be, or `is_back` what it was; return those that somebody else changed.

        With `is_strict` the first such path raises `ChangedMeanwhile`, and the rest stays as it is.
        """
        left: list[str] = []
        for change in self._ordered(is_back=is_back):
            wanted, present = change.after, change.before
            if is_back:
                wanted, present = present, wanted
            try:
                image = image_at(self.top, change.path)
                if image == wanted:
                    continue
                if image != present:
                    raise ChangedMeanwhile(change.path)
                self._replace(change.path, wanted, self.befores if is_back else self.afters)
            except ChangedMeanwhile:
                if is_strict:
                    raise
                self._discard_temporary(change.path)
                left.append(change.path)
        self._sync()
        return left

    def _ordered(self, *, is_back: bool) -> Iterable[PathChange]:
        """Removals first, so that a file can take the place of a directory, and the other way round."""
        in_order = sorted(self.changes, key=lambda change: change.path)
        wanted = [(change.before if is_back else change.after) for change in in_order]
        removed = [c for c, image in zip(in_order, wanted, strict=True) if image == ABSENT]
        written = [c for c, image in zip(in_order, wanted, strict=True) if image != ABSENT]
        return [*reversed(removed), *written]

    def _replace(self, path: str, wanted: Image, staged: Path) -> None:
        self.probe("landing.before_file")
        if wanted == ABSENT:
            with folder_of(self.top, path) as (folder, name):
                os.unlink(name, dir_fd=folder)
            self._prune(path)
        else:
            try:
                with folder_of(self.top, path, makes=True) as (folder, name):
                    with suppress(FileNotFoundError, NotADirectoryError):
                        os.rmdir(name, dir_fd=folder)
                    _place(staged / path, folder, name, self._temporary)
            except OSError as error:
                if error.errno in (*IN_THE_WAY, errno.ENOTEMPTY, errno.EISDIR):
                    raise ChangedMeanwhile(path) from error
                raise
        self.probe("landing.after_file")

    @property
    def _temporary(self) -> str:
        """The name of the copy beside a file that is on another filesystem than the staged one."""
        return f".nightherd-{self.stage.name}"

    def _discard_temporary(self, path: str) -> None:
        with suppress(OSError), folder_of(self.top, path) as (folder, _):
            os.unlink(self._temporary, dir_fd=folder)

    def _prune(self, path: str) -> None:
        """Remove the directories that the removal of `path` left empty, as git does."""
        above = path.rpartition("/")[0]
        while above:
            try:
                with folder_of(self.top, above) as (folder, name):
                    os.rmdir(name, dir_fd=folder)
            except OSError:
                return  # it is not empty, or it is not ours to remove
            above = above.rpartition("/")[0]

    def _sync(self) -> None:
        """Bring the names to the disk: the record of the landing is deleted after this."""
        for path in {change.path.rpartition("/")[0] for change in self.changes}:
            with (
                suppress(OSError),
                folder_of(self.top, f"{path}/." if path else ".") as (folder, _),
            ):
                os.fsync(folder)


def sync_staged(folder: Path) -> None:
    """Bring every staged file to the disk."""
    for inner, _, names in os.walk(folder):
        for name in names:
            path = Path(inner, name)
            if not path.is_symlink():
                handle = os.open(path, READ)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


def copy_file(top: Path, path: str, folder: Path) -> None:
    """Copy a file or a link to the same path below `folder`, with its permissions; it is on the disk then."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with folder_of(top, path) as (opened, name):
        _copy(opened, name, target)


def mode_after(mode: int, *, is_executable: bool) -> int:
    """Return the permissions of a file that is replaced: those it had, executable or not."""
    kept = stat.S_IMODE(mode) & 0o777
    return kept | (kept & 0o444) >> 2 if is_executable else kept & ~EXECUTABLE


def _copy(folder: int, name: str, target: Path) -> None:
    if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
        return
    with os.fdopen(os.open(name, READ, dir_fd=folder), "rb") as source:
        mode = stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777
        with os.fdopen(os.open(target, NEW, 0o600), "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), mode)
            os.fsync(copy.fileno())


def _place(staged: Path, folder: int, name: str, temporary: str) -> None:
    """Move a staged file to its place; over a copy beside it where that is on another filesystem."""
    try:
        os.rename(staged, name, dst_dir_fd=folder)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # of a process that was killed right here
    if staged.is_symlink():
        os.symlink(staged.readlink(), temporary, dir_fd=folder)
    else:
        with (
            staged.open("rb") as source,
            os.fdopen(os.open(temporary, NEW, 0o600, dir_fd=folder), "wb") as copy,
        ):
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777)
            os.fsync(copy.fileno())
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
