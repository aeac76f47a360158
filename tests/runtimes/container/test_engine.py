"""The adapter of the Docker Engine API, against a real engine."""

from __future__ import annotations

import gc
import io
import os
import socket
import tarfile
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from docker_engine import DockerEngine
from docker_image import ensure_image
from nightherd.errors import (
    ContainerEngineError,
    InvalidValueError,
    NightherdError,
    NotFoundError,
    RefusedError,
)
from nightherd.next_step import Action, NextStep
from nightherd.runtimes.container.engine import Engine

T = TypeVar("T")
Run = Callable[[Callable[[Engine], Awaitable[T]]], T]
SLEEP = ["sleep", "600"]


def with_engine(path: str, work: Callable[[Engine], Awaitable[T]], *, call_s: float = 60) -> T:
    """Do `work` with an engine, and close it."""

    async def run() -> T:
        async with Engine(path, call_s=call_s) as engine:
            return await work(engine)

    return anyio.run(run)


def body(image: str, *command: str, **more: Any) -> dict[str, Any]:
    return {
        "Image": image,
        "Entrypoint": list(command),
        "HostConfig": {"NetworkMode": "none"},
        "Labels": {"nightherd.fleet": "tests"},
        **more,
    }


def name_for(tmp_path: Path) -> str:
    return f"nh-{os.getpid()}-{abs(hash(tmp_path))}"


def test_version_and_info_of_a_real_engine(docker_engine: DockerEngine) -> None:
    async def work(engine: Engine) -> tuple[dict[str, Any], dict[str, Any]]:
        return await engine.version(), await engine.info()

    version, info = with_engine(docker_engine.socket_path, work)

    assert version["ApiVersion"]
    assert info["ServerVersion"] == version["Version"]


def test_life_of_a_container(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    name = name_for(tmp_path)

    async def work(engine: Engine) -> None:
        created = body(container_image, *SLEEP, Labels={"nightherd.fleet": name, "a": "b=c"})
        container = await engine.create(name, created)
        await engine.start(container)
        await engine.start(container)
        assert (await engine.inspect(container))["State"]["Running"]

        (listed,) = await engine.list({"nightherd.fleet": name})
        assert (listed["Id"], listed["Names"], listed["State"]) == (
            container,
            [f"/{name}"],
            "running",
        )
        assert len(await engine.list({"nightherd.fleet": None, "a": "b=c"})) == 1
        assert await engine.list({"nightherd.fleet": f"{name}-other"}) == []

        with pytest.raises(RefusedError, match="remove a running container"):
            await engine.remove(container)
        assert await engine.kill(container, "SIGKILL")
        assert await engine.wait(container) == 137
        assert not await engine.kill(container)
        # One that has ended is listed too.
        assert [one["State"] for one in await engine.list({"nightherd.fleet": name})] == ["exited"]
        assert await engine.remove(container)
        assert not await engine.remove(container)
        assert not await engine.kill(container)
        with pytest.raises(NotFoundError, match="No such container"):
            await engine.inspect(container)

    with_engine(docker_engine.socket_path, work)


NOISY = r"""
import sys
sys.stdout.buffer.write(b"gr\xc3\xbcn \xff\n"); sys.stdout.flush()
sys.stderr.write("and this\n"); sys.exit(3)
"""


@pytest.mark.parametrize("is_tty", [False, True], ids=["streams", "terminal"])
def test_logs_are_both_streams_and_bytes_that_are_not_text_do_no_harm(
    is_tty: bool, docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    async def work(engine: Engine) -> tuple[int, str]:
        created = body(container_image, "python3", "-c", NOISY, Tty=is_tty)
        container = await engine.create(name_for(tmp_path), created)
        await engine.start(container)
        code = await engine.wait(container)
        logs = await engine.logs(container)
        assert len(await engine.logs(container, limit=2)) == 2
        await engine.remove(container, force=True)
        return code, logs

    code, logs = with_engine(docker_engine.socket_path, work)

    assert code == 3
    # Two pipes have no order between them.
    assert sorted(logs.splitlines()) == ["and this", "grün \ufffd"]


def test_long_output_is_cut_off(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    async def work(engine: Engine) -> str:
        script = "for _ in range(200_000): print('x' * 20)"
        container = await engine.create(
            name_for(tmp_path), body(container_image, "python3", "-c", script)
        )
        await engine.start(container)
        await engine.wait(container)
        logs = await engine.logs(container)
        await engine.remove(container, force=True)
        return logs

    assert len(with_engine(docker_engine.socket_path, work)) == 1024 * 1024


def test_missing_image_says_how_to_get_it(docker_engine: DockerEngine, tmp_path: Path) -> None:
    async def work(engine: Engine) -> None:
        assert not await engine.image_exists("nobody/has-this:1")
        await engine.create(name_for(tmp_path), body("nobody/has-this:1", *SLEEP))

    with pytest.raises(NotFoundError, match="has no image nobody/has-this:1") as raised:
        with_engine(docker_engine.socket_path, work)
    assert raised.value.hint == (
        "docker pull nobody/has-this:1, or build the image that agents run in"
    )
    assert raised.value.next_step == NextStep(Action.BUILD_IMAGE)


def test_name_that_is_taken_is_refused(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    name = name_for(tmp_path)

    async def work(engine: Engine) -> None:
        assert await engine.image_exists(container_image)
        container = await engine.create(name, body(container_image, *SLEEP))
        try:
            with pytest.raises(RefusedError, match="already in use"):
                await engine.create(name, body(container_image, *SLEEP))
        finally:
            await engine.remove(container, force=True)

    with_engine(docker_engine.socket_path, work)


def test_program_that_the_image_lacks_is_the_engines_own_message(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    async def work(engine: Engine) -> None:
        container = await engine.create(name_for(tmp_path), body(container_image, "no-such-thing"))
        try:
            with pytest.raises(NightherdError, match="no-such-thing"):
                await engine.start(container)
        finally:
            await engine.remove(container, force=True)

    with_engine(docker_engine.socket_path, work)


@pytest.mark.parametrize("name", ["../images/x", "a b", "", "a/../b", "x?force=1", "-x", "a\nb"])
def test_names_cannot_change_the_request(name: str, docker_engine: DockerEngine) -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(InvalidValueError):
            await engine.inspect(name)
        with pytest.raises(InvalidValueError):
            await engine.inspect_image(name)

    with_engine(docker_engine.socket_path, work)


def context(dockerfile: str) -> io.BytesIO:
    """A build context with only a Dockerfile."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        archive.addfile(entry, io.BytesIO(dockerfile.encode()))
    file.seek(0)
    return file


def test_build_yields_progress_and_makes_the_image(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    tag = f"nightherd/test-build:{name_for(tmp_path)}"
    dockerfile = "ARG BASE\nFROM ${BASE}\nARG WORD\nRUN echo said-$WORD\nLABEL said=$WORD\n"

    async def work(engine: Engine) -> tuple[list[str], dict[str, Any]]:
        arguments = {"BASE": container_image, "WORD": "hello"}
        lines = [line async for line in engine.build(context(dockerfile), tag, arguments=arguments)]
        return lines, await engine.inspect_image(tag)

    lines, image = with_engine(docker_engine.socket_path, work)

    assert "said-hello" in lines
    assert image["Config"]["Labels"] == {"said": "hello"}


def test_build_that_fails_ends_with_the_engines_message(
    docker_engine: DockerEngine, container_image: str
) -> None:
    async def work(engine: Engine) -> None:
        dockerfile = f"FROM {container_image}\nRUN exit 7\n"
        async for _ in engine.build(context(dockerfile), "nightherd/test-build:failed"):
            pass

    with pytest.raises(NightherdError, match="returned a non-zero code: 7"):
        with_engine(docker_engine.socket_path, work)


def test_engine_that_ends_during_a_build_is_no_success(own_docker_engine: DockerEngine) -> None:
    image = ensure_image(own_docker_engine)

    async def work(engine: Engine) -> None:
        dockerfile = f"FROM {image}\nRUN echo started; sleep 600\n"
        async for line in engine.build(context(dockerfile), "nightherd/test-build:killed"):
            if line == "started":
                await anyio.to_thread.run_sync(own_docker_engine.kill)

    with pytest.raises(ContainerEngineError):
        with_engine(own_docker_engine.socket_path, work)
    with warnings.catch_warnings():
        # aiohttp leaves a connection that broke in the middle of an answer to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_engine_that_is_not_there_says_how_to_start_it(tmp_path: Path) -> None:
    async def work(engine: Engine) -> None:
        await engine.version()

    with pytest.raises(ContainerEngineError, match="cannot be reached") as raised:
        with_engine(str(tmp_path / "s"), work)
    assert "systemctl start docker" in str(raised.value.hint)


def test_engine_that_is_killed_and_started_is_reached_again(
    own_docker_engine: DockerEngine,
) -> None:
    async def work(engine: Engine) -> None:
        await engine.version()
        own_docker_engine.kill()
        with pytest.raises(ContainerEngineError, match="cannot be reached"):
            await engine.list({"nightherd.fleet": None})
        own_docker_engine.start()
        assert await engine.list({"nightherd.fleet": None}) == []

    with_engine(own_docker_engine.socket_path, work)


def test_engine_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    path = f"/tmp/nh-silent-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        try:

            async def work(engine: Engine) -> None:
                await engine.version()

            with pytest.raises(ContainerEngineError, match=r"no answer within 0\.2 s"):
                with_engine(path, work, call_s=0.2)
        finally:
            Path(path).unlink()
