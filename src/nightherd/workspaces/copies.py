"""Copying directories: blocks are shared where the filesystem can (reflinks), else copied.

Links stay as they are, times and modes too. Sockets, pipes and devices are left out. `.git` files that name a place
outside of the copy are left out as well: commits in the copy would otherwise move the branch of the original.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Collection
from pathlib import Path

from nightherd.workspaces.git import failure

FICLONE = 0x40049409
NOT_SHARED = frozenset(
    {
        errno.EOPNOTSUPP,
        errno.ENOTTY,
        errno.EXDEV,
        errno.EINVAL,
        errno.ENOSYS,
        errno.EPERM,
        errno.EBADF,
    }
)
"""What the system answers where blocks cannot be shared."""
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
BLOCK = 1024 * 1024
REGISTRATIONS = ("worktrees",)
"""What a copied `.git` directory does not get: it names worktrees of the original."""


def copy_tree(source: Path, target: Path, *, skipped: Collection[Path] = ()) -> list[str]:
    """Copy a directory, or a single file, to `target`, which must not be there; return notes for a person.

    `skipped` are directories below `source` that are left out, as real paths.
    """
    try:
        return _Copier(source, target, skipped).run()
    except OSError as error:
        place = error.filename or source
        raise failure(error, f"'{source}' cannot be copied: '{place}'") from error


class _Copier:
    """One copy."""

    def __init__(self, source: Path, target: Path, skipped: Collection[Path]) -> None:
        self._source, self._target = source, target
        self._skipped = {os.path.realpath(path) for path in (*skipped, target)}
        self._shares = True
        self._notes: list[str] = []

    def run(self) -> list[str]:
        status = self._source.lstat()
        if not stat.S_ISDIR(status.st_mode):
            self._copy_entry(str(self._source), str(self._target), status)
            return self._notes
        self._real = os.path.realpath(self._source)
        self._directory(str(self._source), str(self._target), self._real)
        return self._notes

    def _directory(self, source: str, target: str, real: str) -> None:
        # Writable until it is filled; its own mode comes last.
        Path(target).mkdir(mode=0o700)
        is_git = Path(source).name == ".git"
        with os.scandir(source) as entries:
            for entry in entries:
                path = f"{real}/{entry.name}"
                if path in self._skipped or (is_git and entry.name in REGISTRATIONS):
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    self._directory(entry.path, f"{target}/{entry.name}", path)
                elif entry.name == ".git" and self._leads_out(entry.path):
                    self._note(f"'{path}' names a repository outside of the copy, and was left out")
                else:
                    self._copy_entry(entry.path, f"{target}/{entry.name}", status)
        self._finish(target, os.stat(source))  # noqa: PTH116 (hot path: names, not objects)

    def _copy_entry(self, source: str, target: str, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
        elif stat.S_ISREG(status.st_mode):
            self._file(source, target)
        # Else a socket, a pipe or a device: nothing that a copy could hold.

    def _file(self, source: str, target: str) -> None:
        try:
            reading = os.open(source, READ)
        except FileNotFoundError:
            return  # removed meanwhile
        except PermissionError:
            self._note(f"'{source}' cannot be read, and was left out")
            return
        try:
            status = os.fstat(reading)
            if not stat.S_ISREG(status.st_mode):
                return
            writing = os.open(target, WRITE, 0o600)
            try:
                self._content(reading, writing)
                os.fchmod(writing, stat.S_IMODE(status.st_mode))
                os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def _content(self, reading: int, writing: int) -> None:
        if self._shares:
            try:
                fcntl.ioctl(writing, FICLONE, reading)
                return
            except OSError as error:
                if error.errno not in NOT_SHARED:
                    raise
                self._shares = False
        _copy_data(reading, writing)

    def _finish(self, target: str, status: os.stat_result) -> None:
        os.chmod(target, stat.S_IMODE(status.st_mode))  # noqa: PTH101
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _leads_out(self, dot_git: str) -> bool:
        """Whether a `.git` file or link leads to a place that is not copied with it."""
        if Path(dot_git).is_symlink():
            named = os.path.realpath(dot_git)
        else:
            try:
                text = os.fsdecode(Path(dot_git).read_bytes()[:8192])
            except OSError:
                return False
            prefix, _, path = text.partition(": ")
            if prefix != "gitdir":
                return False
            # An absolute path leads to the original, also when that is inside of what is copied.
            if path.startswith("/"):
                return True
            named = os.path.realpath(Path(dot_git).parent / path.removesuffix("\n"))
        return not named.startswith(f"{self._real}/")

    def _note(self, text: str) -> None:
        self._notes.append(text)


def _copy_data(reading: int, writing: int) -> None:
    """Copy in the kernel; holes stay holes."""
    size = os.fstat(reading).st_size
    copy: Callable[..., int] | None = getattr(os, "copy_file_range", None)
    offset = 0
    while offset < size:
        begin, end = _next_data(reading, offset, size)
        offset = begin
        while offset < end:
            count = _copy_piece(copy, reading, writing, offset, min(end - offset, 64 * BLOCK))
            if count == 0:
                break  # it became shorter meanwhile
            offset += count
        offset = max(offset, end)
    os.ftruncate(writing, size)


def _copy_piece(
    copy: Callable[..., int] | None, reading: int, writing: int, offset: int, count: int
) -> int:
    if copy is not None:
        try:
            return copy(reading, writing, count, offset, offset)
        except OSError as error:
            if error.errno not in NOT_SHARED:
                raise
    data = os.pread(reading, min(count, BLOCK), offset)
    return os.pwrite(writing, data, offset)


def _next_data(reading: int, offset: int, size: int) -> tuple[int, int]:
    """Where the next bytes are that are no hole, and where they end."""
    try:
        begin = os.lseek(reading, offset, os.SEEK_DATA)
        return begin, os.lseek(reading, begin, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        return offset, size


def empty_directory(target: Path) -> None:
    """Make an empty directory."""
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise failure(error, f"'{target}' cannot be made") from error


def disk_bytes(directory: Path) -> int:
    """Return the bytes that a directory takes on disk; a file with several names counts once."""
    total, seen = 0, set[tuple[int, int]]()
    folders = [str(directory)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
                    elif status.st_nlink > 1:
                        if (status.st_dev, status.st_ino) in seen:
                            continue
                        seen.add((status.st_dev, status.st_ino))
                    total += status.st_blocks * 512
        except OSError:
            continue  # removed meanwhile, or not readable
    return total
