"""The files that gates show: in the directories that runs work in, and nowhere else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from nightherd.errors import InvalidValueError, NotFoundError, RefusedError
from nightherd.files.paths import follow, safe_child
from nightherd.files.regular import open_regular
from nightherd.files.without_links import replace_without_links
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import no_probe
from nightherd.workspaces.comparing import GitSnapshots
from nightherd.workspaces.files import LocalWorkspaceFiles
from nightherd.workspaces.git import failure

LARGEST_BYTES = 512 * 1024
"""Of a file that a gate shows."""
NEW_FILE = 0o644


class LocalGateFiles:
    """Reads and replaces files of a run's directory on this machine; paths that lead out of it are refused."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir

    def directory(self, workspace: Workspace) -> str:
        """Return where the agent works in the workspace; there or not."""
        return LocalWorkspaceFiles(self._state_dir, probe=no_probe).directory(workspace)

    def read(self, directory: str, path: str) -> str:
        """Return the text of a file; `NotFoundError` without one, `RefusedError` for what is no text a person reads."""
        place = self._place(directory, path)
        try:
            with open_regular(place, follows_links=False) as file:
                content = file.read(LARGEST_BYTES + 1)
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no file {path} in {directory}") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise RefusedError(f"{path} in {directory} cannot be read: {reason}") from error
        if len(content) > LARGEST_BYTES:
            raise RefusedError(
                f"{path} has {size:,} bytes, and a gate shows at most {LARGEST_BYTES:,}"
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise RefusedError(f"{path} in {directory} is not UTF-8 text") from error

    def write(self, directory: str, path: str, text: str) -> None:
        """Replace the file, whole or not at all; its permissions stay."""
        place = self._place(directory, path)
        try:
            mode = place.lstat().st_mode & 0o777
        except OSError:
            mode = NEW_FILE
        if not place.parent.is_dir():
            raise NotFoundError(f"there is no directory for {path} in {directory}")
        try:
            replace_without_links(place, text.encode(), mode=mode)
        except UnicodeEncodeError as error:
            raise RefusedError(f"the text for {path} is not UTF-8") from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                raise RefusedError(
                    f"{path} in {directory} cannot be written: a directory on the way was replaced meanwhile"
                ) from error
            raise failure(error, f"{path} in {directory} cannot be written") from error

    def _place(self, directory: str, path: str) -> Path:
        """The file's place; an agent may have chosen the path, and must not be shown what other agents said."""
        place = _place(directory, path)
        if place.is_relative_to(os.path.realpath(self._state_dir)):
            raise RefusedError(f"{path} in {directory} is part of the state directory")
        return place

    def patch(self, store: str, before: str, after: str, *, other: str | None = None) -> bytes:
        """Return the difference of two snapshots as a git patch."""
        return GitSnapshots(self._state_dir).patch(store, before, after, other=other)


def _place(directory: str, path: str) -> Path:
    """The real path of the file, in the real directory; absolute paths count too, if they are in the directory.

    Links are followed once, and what they lead to is checked: an agent may exchange them meanwhile.
    """
    root = Path(directory)
    name = path
    refusal = RefusedError(f"{path} is not in {directory}, where the run works")
    if path.startswith("/"):
        try:
            name = str(Path(os.path.normpath(path)).relative_to(root))
        except ValueError:
            raise refusal from None
    try:
        home = follow(root)
        place = follow(safe_child(root, name))
    except (InvalidValueError, OSError) as error:
        raise refusal from error
    if place == home or not place.is_relative_to(home):
        raise refusal
    return place
