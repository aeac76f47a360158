"""Finding the fleet file. Imports neither YAML nor pydantic: reading commands start with this alone."""

from __future__ import annotations

from pathlib import Path

FLEET_FILE_NAMES = ("nightherd.yaml", "nightherd.yml")
"""What a fleet file is called; the first one found in a directory counts."""
STATE_DIRECTORY = ".nightherd"
"""Beside the fleet file: where its state is unless another place is named."""


def fleet_file_in(directory: Path) -> Path | None:
    """The fleet file that stands in `directory` itself, or None."""
    for name in FLEET_FILE_NAMES:
        candidate = directory / name
        try:
            if candidate.is_file() or candidate.is_symlink():
                return candidate
        except OSError:
            # A directory that may not be searched has no fleet file for us; the ones above may.
            return None
    return None


def find_fleet_file(start: Path) -> Path | None:
    """The fleet file of `start` or of the nearest directory above it, absolute, or None."""
    absolute = start.absolute()
    for directory in (absolute, *absolute.parents):
        found = fleet_file_in(directory)
        if found is not None:
            return found
    return None
