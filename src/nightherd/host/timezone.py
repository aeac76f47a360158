"""The machine's time zone, by name where it has one: a name says when the clocks change, an offset does not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

LOCALTIME = Path("/etc/localtime")
FOLDER = "zoneinfo"
"""The folder of the time zones, on every system."""


def local_zone(
    environ: Mapping[str, str] = os.environ, localtime: Path = LOCALTIME
) -> tuple[str, tzinfo]:
    """Return the time zone of this machine and its name: that of `TZ`, else the system's; UTC where there is none."""
    named = environ.get("TZ", "").removeprefix(":").strip()
    if named:
        found = _zone(named)
        return (named, found) if found is not None else ("UTC", UTC)
    with suppress(OSError):
        parts = localtime.resolve(strict=True).parts
        if FOLDER in parts:
            name = "/".join(parts[len(parts) - parts[::-1].index(FOLDER) :])
            found = _zone(name)
            if found is not None:
                return name, found
        with localtime.open("rb") as file, suppress(ValueError):
            return "local", ZoneInfo.from_file(file, key="local")
    return "UTC", UTC


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
