"""What tests of state share: a state directory, and a server that forks workloads to kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.testing.fork_server import ForkServer


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    """A new state directory."""
    return init_state_directory(tmp_path / ".nightherd")


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """One server for all trials of a module."""
    with ForkServer() as server:
        yield server
