"""Temporary files of atomic writes: what they are called, and from when on one is a killed writer's."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from pathlib import Path

TEMP_NAME = re.compile(r"\.(?P<name>.+)\.tmp\.[0-9a-f]{16}", re.DOTALL)
YOUNGEST_STALE = timedelta(minutes=1)
"""A younger one may belong to a writer that is still at it."""


def temp_path_for(path: Path) -> Path:
    """A name nobody else uses, in the directory of `path`: a rename never crosses filesystems."""
    return Path(temp_name_for(str(path)))


def temp_name_for(path: str) -> str:
    """The same for a path as text."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.tmp.{secrets.token_hex(8)}"
