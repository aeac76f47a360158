"""Fleets: loaded and checked with the runtimes that are registered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from nightherd.config import load
from nightherd.config.current import CurrentConfig
from nightherd.model.agents.agent import Fleet
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

load_fleet = partial(load.load_fleet, runtimes=KNOWN_RUNTIMES)
"""Loads a fleet; see `config.load.load_fleet`."""
check_fleet = partial(load.check_fleet, runtimes=KNOWN_RUNTIMES)
"""Checks a fleet; see `config.load.check_fleet`."""


def open_config(fleet: Fleet, environ: Mapping[str, str], state_dir: Path) -> CurrentConfig:
    """What the files of a loaded fleet say now."""
    file = Path(fleet.file)
    check = partial(check_fleet, file, environ=environ, cwd=file.parent, state_dir=state_dir)
    return CurrentConfig(check, file, (fleet.file, *fleet.files), state_dir)
