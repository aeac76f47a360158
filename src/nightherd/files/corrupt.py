"""Keeping a file that cannot be used: out of the way, under a name that says when, never overwritten."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from nightherd.files.permission import state_file_error


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
