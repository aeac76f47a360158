"""Fixtures with a real Docker Engine: one for all workers of a run, or one for a test that harms it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from components import Components
from docker_engine import (
    DockerEngine,
    EngineDidNotStart,
    one_at_a_time,
    use_engine,
    wait_until_gone,
)
from docker_image import ensure_image
from nightherd.model.containers.image import ClaudeSource
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.image import ImagePlan, build_image
from other_engines import use_other_engine
from podman_engine import use_podman


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


@pytest.fixture(scope="session")
def claude_image(docker_engine: DockerEngine, container_image: str, components: Components) -> str:
    """The name of the same image with the real `claude` at /usr/local/bin/claude: a layer of 365 MB, made once a run.

    A test that needs the program but no such image mounts `components.claude()` there instead.
    """
    plan = ImagePlan(
        tag=f"{container_image}-claude",
        base=container_image,
        claude=ClaudeSource.BUNDLED,
        claude_program=components.claude(),
        nightherd_version="0",
    )
    with one_at_a_time(docker_engine.home / "image.lock"):
        if docker_engine.request("GET", f"/images/{plan.tag}/json")[0] == 404:
            anyio.run(_build, docker_engine.socket_path, plan)
    return plan.tag


async def _build(socket: str, plan: ImagePlan) -> None:
    async with Engine(socket) as engine:
        await build_image(engine, plan, lambda _: None)


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


@pytest.fixture(scope="module")
def podman_engine(components: Components) -> Iterator[DockerEngine]:
    """A Podman for the tests of one module."""
    if sys.platform != "linux" or os.geteuid() != 0:
        components.absent("Podman", "run the tests as root on Linux")
    components.program("podman")
    try:
        with use_podman() as engine:
            yield engine
    except EngineDidNotStart as error:
        components.absent("Podman", str(error))


@pytest.fixture(scope="module")
def rootless_engine(components: Components) -> Iterator[DockerEngine]:
    """A rootless Docker Engine for the tests of one module."""
    yield from other_engine("rootless", components)


@pytest.fixture(scope="module")
def cgroup2_engine(components: Components) -> Iterator[DockerEngine]:
    """A Docker Engine with cgroup v2 for the tests of one module."""
    yield from other_engine("cgroup2", components)


def other_engine(kind: str, components: Components) -> Iterator[DockerEngine]:
    """Give an engine of this kind, or end the test by the rule for components that are not there."""
    if sys.platform != "linux" or os.geteuid() != 0:
        components.absent(f"a Docker Engine: {kind}", "run the tests as root on Linux")
    components.program("dockerd")
    try:
        with use_other_engine(kind) as engine:
            yield engine
    except EngineDidNotStart as error:
        components.absent(f"a Docker Engine: {kind}", str(error))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run only when its engine has left nothing behind."""
    factory = getattr(config, "_tmp_path_factory", None)
    base = getattr(factory, "_basetemp", None)
    if base is not None and not hasattr(config, "workerinput"):
        wait_until_gone(base)
