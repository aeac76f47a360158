"""How far the readable files are, for commands that load nothing else of the mirror."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

VERSION = 3
"""The version of `mirror.json`. Version 2 had copies of rows in it."""
RIGHT_SINCE = 2
"""Files of this version and later show what they should; version 1 did not know which sessions are forks."""
MEMORY, STATE, LOCK = "mirror.json", "state.yaml", "mirror.lock"
POSITION = re.compile(rb'\{"v":(\d+)(?:,"change":(\d+))?[,}]')
HEAD_BYTES = 64


def mirrored_change(root: Path) -> int | None:
    """Return the change that the files show; None where none are kept, 0 where all have to be looked at again."""
    try:
        matched = POSITION.match(_head(root / MEMORY))
    except FileNotFoundError:
        return 0 if (root / STATE).exists() else None
    except OSError:
        return None
    if matched is None or not RIGHT_SINCE <= int(matched[1]) <= VERSION:
        return 0
    return int(matched[2] or 0)


def is_followed(root: Path) -> bool:
    """Return whether a live process keeps the files up to date."""
    try:
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _head(path: Path) -> bytes:
    # A pipe in the place of the file is not waited for.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, HEAD_BYTES)
    finally:
        os.close(handle)
