"""Directory identity: distinguishes a directory from a copy of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from nightherd.errors import InvalidValueError


def directory_identity(path: Path) -> str:
    """Return the device and inode of the directory. A rename keeps it; a copy has another one."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def follow(path: Path) -> Path:
    """The path with every link on its way followed, there or not; `OSError` where links lead in a circle.

    What stands behind a circle is not looked at when links are followed (`circle/../link` ends at that link,
    wherever it leads), and whether a circle is an error is another matter in each Python: it is found here.
    """
    _check_circle(path)
    real = os.path.realpath(path)
    _check_circle(Path(real))
    if os.path.realpath(real) != real:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return Path(real)


def _check_circle(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise


def safe_child(root: Path, name: str) -> Path:
    """The path of `name` directly or further below `root`, or `InvalidValueError`.

    Refused: nothing at all, NUL, absolute names, `..`, and a symbolic link on the way, or at the end,
    that leads out of `root`.
    """
    reason = _fault(name)
    if reason is not None:
        raise InvalidValueError(f"{name!r} cannot be a file name here: {reason}")
    path = root / name
    try:
        home, found = follow(root), follow(path)
        inside = found != home and found.is_relative_to(home)
    except OSError as error:
        raise InvalidValueError(f"{name!r} cannot be a file name here: {error}") from error
    if not inside:
        raise InvalidValueError(f"{name!r} leads out of {str(root)!r}")
    return path


def safe_name(name: str) -> str:
    """`name` if it can be one file's name, whatever directory it is in; else `InvalidValueError`."""
    reason = _fault(name) or ("it is a path" if "/" in name else None)
    if reason is not None:
        raise InvalidValueError(f"{name!r} cannot be a file name here: {reason}")
    return name


def _fault(name: str) -> str | None:
    if not name.strip():
        return "it is empty"
    if "\0" in name:
        return "it holds a NUL character"
    if name.startswith("/") or "\\" in name:
        return "it is absolute or holds a backslash"
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "it climbs or has empty parts"
    return None
