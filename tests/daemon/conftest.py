"""Pastures on a fork server that has imported what a daemon imports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.pasture import FLEET, Pasture
from nightherd.testing.fork_server import ForkServer


@pytest.fixture
def make_pasture(tmp_path: Path, daemon_server: ForkServer) -> Callable[..., Pasture]:
    """Makes a directory with a fleet in it."""

    def make(text: str = FLEET) -> Pasture:
        return Pasture(tmp_path, daemon_server, text)

    return make
