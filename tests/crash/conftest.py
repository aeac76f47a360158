"""Quick places for the files of suites that kill whole commands."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crash.ground import Ground
from nightherd.testing.fork_server import ForkServer

MEMORY = Path("/dev/shm")
NEEDED_BYTES = 64 * 1024 * 1024


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, where the machine has one: what is killed there waits for no disk."""
    has_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED_BYTES
    with tempfile.TemporaryDirectory(
        prefix="nightherd-test-", dir=MEMORY if has_memory else tmp_path
    ) as folder:
        yield Path(folder)


@pytest.fixture
def make_ground(command_server: ForkServer, quick_path: Path) -> Callable[[str], Ground]:
    """Makes a directory with a fleet in it."""

    def make(fleet: str) -> Ground:
        folder = quick_path / "ground"
        folder.mkdir()
        (folder / "nightherd.yaml").write_text(fleet)
        return Ground(folder, command_server)

    return make
