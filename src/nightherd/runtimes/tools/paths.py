"""Which file a tool's path means: one inside the directories that are open to it, or a refusal.

This keeps an agent's file tools where its work is. It is no sandbox: a command can reach what the
person running it can reach.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from nightherd.errors import InvalidValueError
from nightherd.files.paths import follow
from nightherd.model.permissions.permission import LONGEST_PATH


def locate(root: Path, text: str, more: Sequence[Path] = ()) -> Path:
    """The real path of `text`, links followed; `InvalidValueError` unless inside `root` or one of `more`."""
    if not text or "\0" in text:
        raise InvalidValueError("the path is empty, or has a zero byte in it")
    if len(text) > LONGEST_PATH:
        raise InvalidValueError(f"no path has {len(text):,} characters")
    try:
        base = follow(root)
        path = follow(base / text)
    except (OSError, ValueError) as error:  # a circle of links, an impossible name
        raise InvalidValueError(f"{text!r} is not a path that can be used: {error}") from error
    if not any(path.is_relative_to(one) for one in (base, *(other.resolve() for other in more))):
        raise InvalidValueError(f"{text!r} is outside the working directory")
    return path


def find_file(path: Path, name: str) -> os.stat_result | None:
    """What is known of the file at `path`, None when there is none, a refusal when it is something else."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(found.st_mode):
        raise InvalidValueError(f"{name} is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValueError(f"{name} is not a regular file")
    return found


def get_file(path: Path, name: str) -> os.stat_result:
    """What is known of the file at `path`, or a refusal when there is no regular file."""
    found = find_file(path, name)
    if found is None:
        raise InvalidValueError(f"there is no file {name}")
    return found


def explain(error: OSError, name: str) -> str:
    """Why the system would not do it, in terms of the file as the agent named it."""
    return f"{name}: {error.strerror or error}"
