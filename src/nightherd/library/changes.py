"""A state directory opened for a program's own changes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from nightherd.config.discovery import find_fleet_file
from nightherd.config.load import load_fleet
from nightherd.engine.record import Record
from nightherd.errors import ConfigError
from nightherd.model.secret import Secrets
from nightherd.state import directory
from nightherd.wiring.memories import known_secrets, open_record


@asynccontextmanager
async def open_changes(state_dir: Path) -> AsyncIterator[Record]:
    """Open the state and journals of an existing state directory for a program's own changes; secrets are masked."""
    directory.validate_state_directory(state_dir)
    async with open_record(state_dir) as record:
        yield replace(record, secrets=_secrets(state_dir))


def _secrets(state_dir: Path) -> Secrets:
    """Every secret that the fleet file beside the directory, or the environment, knows."""
    environ, here = dict(os.environ), state_dir.absolute().parent
    file = find_fleet_file(here)
    try:
        fleet = None if file is None else load_fleet(file, environ=environ, cwd=here).fleet
    except ConfigError:
        fleet = None
    environment = {**(fleet.environment if fleet is not None else {}), **environ}
    return known_secrets(fleet, environment, state_dir)
