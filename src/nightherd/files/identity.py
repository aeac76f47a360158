"""Directory identity: tells a directory from a copy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def directory_identity(path: Path) -> str:
    """Return the device and inode of the directory. A rename keeps it; a copy has another one."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"
