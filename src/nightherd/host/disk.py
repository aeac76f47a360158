"""How full a disk is."""

from __future__ import annotations

import shutil
from pathlib import Path

from nightherd.model.disk_space import DiskSpace


def disk_space(path: Path) -> DiskSpace | None:
    """Return how full the disk of a file or directory is; None where that cannot be found out."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return DiskSpace(free=usage.free, total=usage.total)
