"""A state directory made whole, with its readable state file, for programs that bring their own."""

from __future__ import annotations

from pathlib import Path

from nightherd.files.atomic import atomic_write_yaml
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.state import directory

NAME = ".nightherd"
EMPTY: dict[str, dict[str, object]] = {"fleet": {}, "agents": {}}


def init_state_directory(path: str | Path = NAME) -> directory.StateDirectory:
    """Make the state directory at `path` whole; what is there stays as it is.

    A `state.yaml` that is missing is written with an empty fleet; one that cannot be read, or is no fleet
    state, raises `StateFileError` and stays. `StateDirectoryCreateError` when a directory cannot be made.
    """
    found = directory.init_state_directory(Path(path))
    read_fleet_state(found.state_file)
    if not found.state_file.exists():
        atomic_write_yaml(found.state_file, EMPTY)
    return directory.validate_state_directory(found.root)


def get_state_directory(path: str | Path = NAME) -> directory.StateDirectory:
    """Return the paths of a state directory without creating or checking anything."""
    return directory.StateDirectory(root=Path(path).absolute())
