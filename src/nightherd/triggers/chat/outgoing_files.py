"""KeptFiles: copies of files that agents send, below the state directory."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from nightherd.errors import RefusedError
from nightherd.files.atomic import temp_path_for, write_all
from nightherd.files.regular import open_regular
from nightherd.model.chat.files import attachment_path, shown_name
from nightherd.model.units import format_size
from nightherd.ports.outgoing_files import FileToKeep, KeptFile

DIGEST_LENGTH = 16
FILE_MODE, FOLDER_MODE = 0o600, 0o700


class KeptFiles:
    """An `OutgoingFiles`: `directory` is made when the first file is kept. Nothing of `private` is ever sent."""

    def __init__(self, directory: Path, private: Path) -> None:
        self._directory = directory
        self._private = private

    def keep(self, file: FileToKeep, is_secret: Callable[[str], bool]) -> KeptFile:
        """Copy a file. It is opened without following links: the path was checked, and may be exchanged meanwhile."""
        shown = shown_name(file.path)
        content = self._read(file, shown)
        if is_secret(content.decode(errors="replace")):
            raise RefusedError(
                f"{shown} holds a secret; take it out of the file, or send another one"
            )
        name = posixpath.basename(file.path.rstrip("/"))
        digest = sha256(name.encode(errors="surrogateescape") + b"\0" + content).hexdigest()
        folder = self._directory / file.folder
        target = Path(attachment_path(str(folder), digest[:DIGEST_LENGTH], 1, name))
        if not target.exists():
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            _write(target, content)
        return KeptFile(
            path=str(target),
            name=shown_name(name),
            size=len(content),
            digest=digest[:DIGEST_LENGTH],
        )

    def _read(self, file: FileToKeep, shown: str) -> bytes:
        try:
            real = os.path.realpath(posixpath.join(file.directory, file.path))
            root = os.path.realpath(file.root)
        except ValueError as error:  # a NUL in it
            raise RefusedError(f"{shown} is no path: {error}") from error
        if not _is_below(real, root):
            raise RefusedError(f"{shown} is outside of the workspace {root}; copy it there first")
        if _is_below(real, os.path.realpath(self._private)):
            raise RefusedError(f"{shown} is nightherd's own; it is not sent")
        try:
            with open_regular(Path(real), follows_links=False) as opened:
                content = opened.read(file.limit + 1)
        except FileNotFoundError as error:
            raise RefusedError(f"{shown} does not exist") from error
        except OSError as error:
            raise RefusedError(f"{shown} cannot be sent: {error.strerror}") from error
        if len(content) > file.limit:
            limit = format_size(file.limit)
            raise RefusedError(f"{shown} is larger than {limit}, the most that can be sent here")
        if not content:
            raise RefusedError(f"{shown} is empty")
        return content


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _write(target: Path, content: bytes) -> None:
    """Write the whole file or nothing."""
    written = temp_path_for(target)
    try:
        descriptor = os.open(
            written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE
        )
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
        written.replace(target)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
