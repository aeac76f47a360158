"""Real containers: one that tests share, and what makes others."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import Components
from docker_engine import DockerEngine
from runtimes.container.container_stage import Boxes
from runtimes.container.users_herd import find_interpreter


@pytest.fixture(scope="module")
def interpreter(components: Components) -> str:
    """A Python of this version that every user can run."""
    return find_interpreter(components)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user can reach; those of pytest are closed."""
    directory = Path(tempfile.mkdtemp(prefix="nhu-", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def boxes(docker_engine: DockerEngine, container_image: str, tmp_path: Path) -> Boxes:
    """Makes containers of this test's own."""
    return Boxes(tmp_path, docker_engine.socket_path, container_image)


@pytest.fixture(scope="module")
def shared_boxes(
    docker_engine: DockerEngine, container_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Boxes:
    """The same for tests that leave a container as it was: with `is_ephemeral=False` they use it one after the other."""
    root = tmp_path_factory.mktemp("shared")
    return Boxes(root, docker_engine.socket_path, container_image, fleet=f"fleet-of-{root}")
