"""The fork server, and pastures on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.pasture import FLEET, Pasture
from nightherd.testing.fork_server import ForkServer


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A process that forks daemons."""
    with ForkServer(patience_s=120) as started:
        yield started


@pytest.fixture
def make_pasture(tmp_path: Path, server: ForkServer) -> Callable[..., Pasture]:
    """Makes a directory with a fleet in it."""

    def make(text: str = FLEET) -> Pasture:
        return Pasture(tmp_path, server, text)

    return make
