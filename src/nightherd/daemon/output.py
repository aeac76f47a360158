"""What a detached daemon says goes to one file, which is begun anew before it grows without end."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

OUTPUT = "daemon.out"
LIMIT = 10 * 1024 * 1024
BEFORE = ".1"
"""What the file of before is called after."""


def trim_output(path: Path, *, limit: int = LIMIT) -> bool:
    """Put what this process has said so far aside when it is too much; whether it was.

    Only for a file that is really its output. The process goes on writing at its end, which is then its
    beginning: the file was opened for appending.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 (compared with a descriptor)
        if found.st_size <= limit or not os.path.samestat(found, os.fstat(sys.stdout.fileno())):
            return False
        sys.stdout.flush()
        shutil.copyfile(path, path.with_name(path.name + BEFORE))
        path.with_name(path.name + BEFORE).chmod(0o600)
        os.truncate(path, 0)
    except (OSError, ValueError):
        return False  # a full disk, or no such output: what is said matters less than that it runs
    return True
