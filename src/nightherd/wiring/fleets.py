"""Fleets: loaded and checked with the runtimes that are registered."""

from __future__ import annotations

from functools import partial

from nightherd.config import load
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

load_fleet = partial(load.load_fleet, runtimes=KNOWN_RUNTIMES)
"""Loads a fleet; see `config.load.load_fleet`."""
check_fleet = partial(load.check_fleet, runtimes=KNOWN_RUNTIMES)
"""Checks a fleet; see `config.load.check_fleet`."""
