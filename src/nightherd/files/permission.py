"""System errors as sentences a person can act on, and as errors of ours; directories for their owner only."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from nightherd.errors import AtomicWriteError, StateFileError

SENTENCES = {
    "EACCES": "Permission denied: Cannot access '{path}'. Check file permissions.",
    "EPERM": "Operation not permitted: Cannot access '{path}'. Check file ownership and attributes.",
    "EROFS": "Read-only file system: Cannot write '{path}'. Mount it writable or move the state directory.",
    "ENOSPC": "No space left: Cannot write '{path}'. Free some disk space.",
    "EDQUOT": "Disk quota exceeded: Cannot write '{path}'. Free some space or raise the quota.",
    "ENOENT": "Not found: '{path}' does not exist.",
    "ENOTDIR": "Not a directory: a part of '{path}' is a file.",
    "EISDIR": "Is a directory: '{path}' should be a file.",
    "ELOOP": "Too many symbolic links: Cannot follow '{path}'.",
    "ENAMETOOLONG": "Name too long: Cannot use '{path}'. Choose a shorter name.",
    "EMFILE": "Too many open files: Cannot open '{path}'. Raise the limit of open files.",
}


def permission_error_message(code: str | None, path: str | Path) -> str:
    """What the system's error `code` means for `path`, and what to do about it."""
    known = SENTENCES.get(code or "", "Cannot access '{path}' ({code}).")
    return known.format(path=path, code=code or "unknown error")


def error_code(error: BaseException) -> str | None:
    """The system's name for an error (`EACCES`, ...); None for one that has none."""
    number = error.errno if isinstance(error, OSError) else None
    return None if number is None else errno.errorcode.get(number)


def state_file_error(error: OSError, path: str | Path, operation: str = "read") -> StateFileError:
    """Why the operation on `path` was not done."""
    code = error_code(error)
    message = permission_error_message(code, path)
    return StateFileError(message, path=str(path), operation=operation, code=code)


def atomic_write_error(error: OSError, path: str | Path) -> AtomicWriteError:
    """Why `path` was not written; what was there before still is."""
    code = error_code(error)
    return AtomicWriteError(permission_error_message(code, path), path=str(path), code=code)


def keep_aside(path: Path, now: datetime) -> Path:
    """Rename `path` to `<name>.corrupt-<UTC time>`, where it stays; the path it has now."""
    stamp = f"{path.name}.corrupt-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (stamp if number == 1 else f"{stamp}-{number}" for number in count(1))
    target = next(aside for name in names if not (aside := path.with_name(name)).exists())
    try:
        path.rename(target)
    except OSError as error:
        raise state_file_error(error, path, "rename") from error
    return target


def make_private(directory: Path, top: Path) -> None:
    """Make a directory and those between it and `top`, for their owner only; `top` is made by others' rules."""
    for folder in reversed((directory, *directory.parents)):
        if folder.is_relative_to(top) and folder != top:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
