"""`threads/<job>/state.json`: a job as one document, written as the project wants it and checked both ways.

Derived like the rest of the mirror: whatever happens to these files, no job is the worse for it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError, NightherdError, StateFileError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.paths import safe_child, safe_name
from nightherd.mirror.layout import make_directory
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.state_document import as_written, check_state, read_state

PLAIN = "state.json"
COMPRESSED = "state.json.gz"
BOOKMARKS = "checkpoints.jsonl"
LARGEST = 1 << 30
"""Bytes a compressed file may hold once it is unpacked."""


class ThreadStateFiles:
    """The files of one state directory. `pause` waits so many seconds between tries."""

    def __init__(
        self, root: Path, persistence: Persistence, *, pause: Callable[[float], object]
    ) -> None:
        self._threads = root / "threads"
        self._persistence = persistence
        self._pause = pause

    def directory(self, job_id: str) -> Path:
        """Where a job's files are."""
        return safe_child(self._threads, safe_name(job_id))

    def write(self, job_id: str, document: Mapping[str, Any]) -> Path:
        """Replace the job's file, tried as often as the project says; where it is.

        `InvalidValueError` when the document is not what the schema says: nothing is written then.
        """
        document = as_written(document, self._persistence)
        check_state(document, self._persistence)
        performance = self._persistence.performance
        text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        content = gzip.compress(text, mtime=0) if performance.compress else text
        folder = self.directory(job_id)
        path = folder / (COMPRESSED if performance.compress else PLAIN)
        self._try(lambda: self._replace(path, content))
        (folder / (PLAIN if performance.compress else COMPRESSED)).unlink(missing_ok=True)
        return path

    def read(self, job_id: str) -> dict[str, Any]:
        """The job's file, brought to this version and checked; `StateFileError` says what is wrong with it."""
        folder = self.directory(job_id)
        path = folder / COMPRESSED
        try:
            if path.exists():
                with gzip.open(path) as file:
                    content = file.read(LARGEST)
            else:
                path = folder / PLAIN
                content = path.read_bytes()
            return read_state(content, self._persistence, job_id=job_id)
        except (OSError, EOFError, InvalidValueError) as error:
            said = error.message if isinstance(error, InvalidValueError) else str(error)
            raise StateFileError(f"{path} cannot be used: {said}", path=str(path)) from error

    def written_at(self, job_id: str) -> int | None:
        """When the job's file was last written, in nanoseconds as file systems count them; None for never."""
        folder = self.directory(job_id)
        for name in (COMPRESSED, PLAIN):
            try:
                return (folder / name).lstat().st_mtime_ns
            except OSError:
                continue
        return None

    def _replace(self, path: Path, content: bytes) -> None:
        make_directory(path.parent)
        if self._persistence.performance.atomic:
            atomic_write_file(path, content, durable=False)
        else:
            with open(path, "wb", opener=_private) as file:
                file.write(content)

    def _try(self, action: Callable[[], None]) -> None:
        retry = self._persistence.performance.retry
        for failures in range(1, retry.attempts + 1):
            try:
                action()
            except (NightherdError, OSError):
                if failures == retry.attempts:
                    raise
                self._pause(retry.pause_ms(failures) / 1_000)
            else:
                return


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read, as all others here."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


class ThreadArchive:
    """What becomes of a job's document once the job is over."""

    def __init__(self, root: Path, files: ThreadStateFiles) -> None:
        self._root = root
        self._files = files

    def archive(self, job_id: str, rows: Sequence[Mapping[str, Any]], where: str) -> Path:
        """Put the job's document and its bookmarks into `where`, inside the state directory."""
        folder = safe_child(self._root, where.strip("/").replace("{thread_id}", safe_name(job_id)))
        make_directory(folder)
        for name in (PLAIN, COMPRESSED):
            found = self._files.directory(job_id) / name
            if found.exists():
                atomic_write_file(folder / name, found.read_bytes(), durable=True)
        lines = [*self._known(folder), *(msgspec.json.encode(row) for row in rows)]
        # Written twice by a process that was killed in between, a bookmark is still there once.
        text = b"".join(line + b"\n" for line in dict.fromkeys(lines))
        atomic_write_file(folder / BOOKMARKS, text, durable=True)
        return folder

    def delete(self, job_id: str) -> None:
        """Take the job's document away; what was archived stays."""
        for name in (PLAIN, COMPRESSED):
            (self._files.directory(job_id) / name).unlink(missing_ok=True)

    def _known(self, folder: Path) -> list[bytes]:
        path = folder / BOOKMARKS
        return path.read_bytes().splitlines() if path.exists() else []
