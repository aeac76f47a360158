"""What the errors of SQLite and of the operating system mean to a person.

Each becomes one of ours, with the path, a code, and the next thing to do.
"""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from nightherd.errors import StateError, StateFileError
from nightherd.next_step import Action, Advice, NextStep

MEANINGS: dict[type[apsw.Error], tuple[str, str, Advice]] = {
    apsw.NotADBError: (
        "NOTADB",
        "{path} is not a database",
        Advice(step=NextStep(Action.REBUILD_STATE)),
    ),
    apsw.CorruptError: (
        "CORRUPT",
        "{path} is damaged",
        Advice(step=NextStep(Action.REBUILD_STATE)),
    ),
    apsw.ReadOnlyError: (
        "EROFS",
        "{path} cannot be written: the file or its directory is read-only",
        Advice("check the permissions of the file and of its directory"),
    ),
    apsw.PermissionsError: (
        "EACCES",
        "Permission denied: Cannot access '{path}'. Check file permissions.",
        Advice("check who owns the state directory"),
    ),
    apsw.CantOpenError: (
        "CANTOPEN",
        "{path} cannot be opened",
        Advice(
            "check that you may write in its directory; for details, check the state directory",
            NextStep(Action.CHECK_STATE),
        ),
    ),
    apsw.FullError: (
        "ENOSPC",
        "no space left on the disk of {path}",
        Advice("free some space and try again; what was acknowledged is safe"),
    ),
    apsw.IOError: (
        "EIO",
        "the disk of {path} failed",
        Advice("check the disk; what was acknowledged is safe"),
    ),
    apsw.BusyError: (
        "BUSY",
        "another program kept {path} in use for too long",
        Advice("close the program that has the file open and try again"),
    ),
}


def translate(error: apsw.Error, path: str, operation: str) -> StateError:
    """`error` in our words. The original stays its cause; raise it `from error`."""
    known = apsw.FullError if _is_full(error) else type(error)
    for kind, (code, message, advice) in MEANINGS.items():
        if issubclass(known, kind):
            return StateFileError(
                message.format(path=path),
                path=path,
                operation=operation,
                code=code,
                hint=advice.words,
                next_step=advice.step,
            )
    return StateFileError(
        f"{path}: {error}", path=path, operation=operation, code=type(error).__name__
    )


def _is_full(error: apsw.Error) -> bool:
    """Whether a disk that seems to have failed is only full: what SQLite's readers share found no room."""
    code = getattr(error, "extendedresult", 0)
    return isinstance(error, apsw.IOError) and code == apsw.SQLITE_IOERR_SHMSIZE


def unusable(error: OSError, path: Path, operation: str) -> StateFileError:
    """What the operating system's refusal means, in the words people get."""
    code = errno_name(error)
    return StateFileError(explain(error, path), path=str(path), operation=operation, code=code)


def explain(error: OSError, path: Path) -> str:
    """One sentence about `error` on `path` that says what to check."""
    match errno_name(error):
        case "EACCES" | "EPERM":
            return f"Permission denied: Cannot access '{path}'. Check file permissions."
        case "EROFS":
            return f"Read-only file system: Cannot write '{path}'."
        case "ENOSPC" | "EDQUOT":
            return f"No space left on device: Cannot write '{path}'. Free some space."
        case "ENOENT":
            return f"Not found: '{path}' does not exist."
        case "EISDIR":
            return f"Is a directory: '{path}' should be a file."
        case "ENOTDIR" | "EEXIST":
            return f"Not a directory: '{path}' is in the way of the state directory."
        case _:
            return f"Cannot access '{path}': {error.strerror or error}."


def errno_name(error: OSError) -> str:
    """The name people know an operating system error by."""
    return errno.errorcode.get(error.errno or 0, "EUNKNOWN")
