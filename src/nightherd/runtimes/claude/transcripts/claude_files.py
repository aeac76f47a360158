"""Claude's own files: those of this machine's user, or those of a container, which its agent can change at any moment.

What a container writes is read with the worker's rights. A link there could lead to any file of this machine, and a pipe
would be waited for: below a container's directory no link is followed, and what is no regular file is not opened.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from nightherd.files.atomic import atomic_write_file
from nightherd.files.regular import check_regular, open_directory, open_regular
from nightherd.files.without_links import make_directories, replace_without_links

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700


class ClaudeFiles(Protocol):
    """How files are read and written that `claude` reads and writes too. `OSError` where one cannot be."""

    def open(self, path: Path) -> BinaryIO:
        """A regular file, for reading."""

    def size(self, path: Path) -> int:
        """Its bytes; 0 for what is no file."""

    def below(self, directory: Path) -> Iterator[Path]:
        """The paths in the directory of all that may be files below it; `open` refuses what is none."""

    def replace(self, path: Path, data: bytes) -> None:
        """Write the file, whole or not at all, in directories that are made where there are none."""

    def end_last_line(self, path: Path) -> None:
        """End the last line of a file that a killed process did not finish."""

    def put_aside(self, path: Path, name: str) -> None:
        """Give the file another name in its directory."""

    def link(self, path: Path, target: Path) -> None:
        """Give the file a second path, in directories that are made where there are none."""


class OwnFiles:
    """The files of this machine's own user, who may have linked them to wherever they like."""

    def open(self, path: Path) -> BinaryIO:
        """The file, wherever links lead."""
        return open_regular(path)

    def size(self, path: Path) -> int:
        """Its bytes."""
        try:
            return path.stat().st_size
        except OSError:
            return 0

    def below(self, directory: Path) -> Iterator[Path]:
        """Files, not what links in there lead to."""
        if directory.is_dir():
            for path in sorted(directory.rglob("*")):
                if not path.is_symlink() and path.is_file():
                    yield path.relative_to(directory)

    def replace(self, path: Path, data: bytes) -> None:
        """Write a private file."""
        make_private(path.parent)
        atomic_write_file(path, data)

    def end_last_line(self, path: Path) -> None:
        """End it."""
        with path.open("r+b") as file:
            _end_last_line(file)

    def put_aside(self, path: Path, name: str) -> None:
        """Rename it."""
        path.rename(path.with_name(name))

    def link(self, path: Path, target: Path) -> None:
        """Make a hard link; a copy where the disk has none."""
        make_private(target.parent)
        try:
            os.link(path, target)
        except OSError:  # or another run was faster
            if not target.exists():
                atomic_write_file(target, path.read_bytes())


class SharedFiles:
    """The files of a container below `top`, its user's own directory; a path with a link anywhere in it is no file."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def open(self, path: Path) -> BinaryIO:
        """The file itself."""
        return open_regular(self._own(path), follows_links=False)

    def size(self, path: Path) -> int:
        """Its bytes."""
        try:
            with self.open(path) as file:
                return os.fstat(file.fileno()).st_size
        except OSError:
            return 0

    def below(self, directory: Path) -> Iterator[Path]:
        """All names but those of directories."""
        with suppress(OSError), _opened(self._own(directory).parent) as parent:
            for folder, _, names, _ in os.fwalk(directory.name, dir_fd=parent):
                yield from (Path(folder, name).relative_to(directory.name) for name in names)

    def replace(self, path: Path, data: bytes) -> None:
        """Write a file of the container's user."""
        make_directories(self._top, str(self._own(path).parent.relative_to(self._top)))
        replace_without_links(path, data, mode=PRIVATE_FILE)

    def end_last_line(self, path: Path) -> None:
        """End it."""
        with _opened(self._own(path).parent) as directory:
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            handle = os.open(path.name, flags, dir_fd=directory)
            with os.fdopen(handle, "r+b") as file:
                check_regular(handle, path)
                _end_last_line(file)

    def put_aside(self, path: Path, name: str) -> None:
        """Rename it, whatever it is."""
        with _opened(self._own(path).parent) as directory:
            os.rename(path.name, name, src_dir_fd=directory, dst_dir_fd=directory)

    def link(self, path: Path, target: Path) -> None:
        """Make a copy, unless there is a file."""
        if self.size(target) == 0:
            with self.open(path) as file:
                self.replace(target, file.read())

    def _own(self, path: Path) -> Path:
        """The path; `OSError` for one that is not below the container's directory, by its name."""
        if ".." in path.parts or not path.is_relative_to(self._top):
            raise PermissionError(f"{path} is not below {self._top}")
        return path


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = open_directory(directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make_private(directory: Path) -> None:
    """A directory that only its owner sees into, and so are those above it that have to be made."""
    if directory.is_dir():
        return
    make_private(directory.parent)
    directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)


def copy_to(file: BinaryIO, target: Path) -> None:
    """Make `target` a private copy of what `file` holds, unless it has as many bytes already."""
    if target.exists() and target.stat().st_size == os.fstat(file.fileno()).st_size:
        return
    make_private(target.parent)
    with target.open("wb") as copy:
        target.chmod(PRIVATE_FILE)
        shutil.copyfileobj(file, copy)


def _end_last_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    if size:
        file.seek(size - 1)
        if file.read(1) != b"\n":
            file.write(b"\n")
