"""PlacedFiles: files of people, put into directories of agents and below the state directory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from nightherd.errors import RefusedError
from nightherd.files.regular import open_directory, open_regular
from nightherd.files.without_links import make_directories, replace_without_links

FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""An agent in a container may be another user than the worker."""
PRIVATE_MODE = 0o700
ATTEMPTS = 3
"""The end of another turn removes the directory as long as it is empty."""


class PlacedFiles:
    """Implements the `IncomingFiles` port."""

    def place(self, source: str, root: str, path: str) -> None:
        """Copy the file. An agent may put a link there at any moment: none is followed, one in its place is replaced."""
        real = Path(os.path.realpath(root))
        if not real.is_dir():
            raise RefusedError(f"there is no directory {root}")
        target = real / path
        with open_regular(Path(source)) as file:
            content = file.read()
        for left in reversed(range(ATTEMPTS)):
            try:
                make_directories(real, str(target.parent.relative_to(real)))
                replace_without_links(target, content, mode=FILE_MODE, is_durable=False)
            except FileNotFoundError:
                if not left:
                    raise
            except OSError as error:
                raise RefusedError(
                    f"{Path(path).parent} in the agent's directory is a link, or cannot be written: {error.strerror}"
                ) from error
            else:
                return

    def share(self, source: str, folder: str, path: str) -> None:
        """Move the file. Only the folder itself is open: who may not enter the one that it is in does not reach it."""
        shared, target = Path(folder), Path(folder, path)
        shared.parent.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        for one in _directories(target, shared):
            one.chmod(FOLDER_MODE)
        Path(source).chmod(FILE_MODE)
        Path(source).replace(target)

    def unshare(self, folder: str, path: str) -> None:
        """Remove the file, and the directories that are empty then."""
        target = Path(folder, path)
        with suppress(OSError):
            target.unlink(missing_ok=True)
            for one in _directories(target, Path(folder)):
                one.rmdir()

    def remove(self, root: str, path: str) -> None:
        """Remove the file without following a link that an agent has put on the way to it."""
        real = Path(os.path.realpath(root))
        target = real / path
        with suppress(OSError):
            directory = open_directory(target.parent)
            try:
                os.unlink(target.name, dir_fd=directory)
            finally:
                os.close(directory)
        if target.parent == real:
            return
        with suppress(OSError):
            directory = open_directory(target.parent.parent)
            try:
                os.rmdir(target.parent.name, dir_fd=directory)
            finally:
                os.close(directory)


def _directories(target: Path, top: Path) -> list[Path]:
    """The directories of a file up to `top`, innermost first."""
    return [one for one in target.parents if one.is_relative_to(top)]
