"""Temporary files of atomic writes: what they are called, and finding those a killed writer left."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from nightherd.errors import StateFileError
from nightherd.files.permission import error_code, permission_error_message

TEMP_NAME = re.compile(r"\.(?P<name>.+)\.tmp\.[0-9a-f]{16}", re.DOTALL)
YOUNGEST_STALE = timedelta(minutes=1)
"""A younger one may belong to a writer that is still at it."""


def temp_path_for(path: Path) -> Path:
    """A name nobody else uses, in the directory of `path`: a rename never crosses filesystems."""
    return path.with_name(f".{path.name}.tmp.{secrets.token_hex(8)}")


def temp_name_for(path: str) -> str:
    """The same for a path as text."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.tmp.{secrets.token_hex(8)}"


def find_stale_temp_files(
    directories: Iterable[Path], *, now: datetime, older_than: timedelta = YOUNGEST_STALE
) -> list[Path]:
    """Temporary files in `directories` that no writer can still need, sorted.

    The files they were meant to become are whole: a rename had not happened.
    """
    limit = (now - older_than).timestamp()
    found = [
        path
        for directory in directories
        for path in _temp_files(directory)
        if (changed_at := _modified_at(path)) is not None and changed_at <= limit
    ]
    return sorted(found)


def remove_stale_temp_files(
    directories: Iterable[Path], *, now: datetime, older_than: timedelta = YOUNGEST_STALE
) -> list[Path]:
    """Delete what `find_stale_temp_files` finds; the paths deleted."""
    removed = []
    for path in find_stale_temp_files(directories, now=now, older_than=older_than):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            code = error_code(error)
            message = permission_error_message(code, path)
            raise StateFileError(message, path=str(path), operation="delete", code=code) from error
        removed.append(path)
    return removed


def _temp_files(directory: Path) -> list[Path]:
    try:
        return [path for path in directory.iterdir() if TEMP_NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []


def _modified_at(path: Path) -> float | None:
    """When a regular file was last written; None for one that is gone, or is not a regular file."""
    try:
        return path.lstat().st_mtime if path.is_file() and not path.is_symlink() else None
    except FileNotFoundError:
        return None
