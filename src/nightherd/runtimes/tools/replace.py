"""Replacing a file: readers see the old content or the new, never half of it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def replace_file(path: Path, content: bytes, *, old: os.stat_result | None, call: str) -> None:
    """Put `content` at `path` by a rename; an `old` file's mode stays, and its owner where that is allowed.

    A file that may not be written is not replaced either, though a rename could: `PermissionError`.
    """
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "the file is read-only", str(path))
    token = hashlib.sha256(call.encode(errors="replace")).hexdigest()[:12]
    temporary = path.parent / f".nightherd-{os.getpid()}-{token}.tmp"
    temporary.unlink(missing_ok=True)  # left by a killed process that had our pid
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            if old is not None:
                _take_over(stream.fileno(), old)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_over(file: int, old: os.stat_result) -> None:
    try:
        os.fchown(file, old.st_uid, old.st_gid)
    except PermissionError:
        pass  # only root may give files away; the content is what was asked for
    os.fchmod(file, stat.S_IMODE(old.st_mode))
