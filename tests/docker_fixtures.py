"""Fixtures with a real Docker Engine: one for all workers of a run, or one for a test that harms it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import Components
from docker_engine import DockerEngine, EngineDidNotStart, use_engine, wait_until_gone
from docker_image import ensure_image


def shared_directory(base: Path) -> Path:
    """Return the directory that all workers of a run have in common."""
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def docker_engine(
    components: Components, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerEngine]:
    """The engine of this run. A test may make any containers in it, and must not stop it."""
    yield from engine_in(shared_directory(tmp_path_factory.getbasetemp()), components)


@pytest.fixture
def own_docker_engine(components: Components, tmp_path: Path) -> Iterator[DockerEngine]:
    """An engine of this test's own, to kill and to stop."""
    yield from engine_in(tmp_path, components)
    wait_until_gone(tmp_path)


@pytest.fixture(scope="session")
def container_image(docker_engine: DockerEngine) -> str:
    """The name of an image with python3, bash, git and a user 1000, in the engine of this run."""
    return ensure_image(docker_engine)


def engine_in(shared: Path, components: Components) -> Iterator[DockerEngine]:
    """Give the engine of `shared`, or end the test by the rule for components that are not there."""
    if sys.platform != "linux" or os.geteuid() != 0:
        components.absent("a Docker Engine", "run the tests as root on Linux")
    components.program("dockerd")
    try:
        with use_engine(shared) as engine:
            yield engine
    except EngineDidNotStart as error:
        components.absent("a Docker Engine", str(error))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run only when its engine has left nothing behind."""
    factory = getattr(config, "_tmp_path_factory", None)
    base = getattr(factory, "_basetemp", None)
    if base is not None and not hasattr(config, "workerinput"):
        wait_until_gone(base)
