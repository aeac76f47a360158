"""Containers that wait for the next job of a session: whose they are on record, and that none is kept which cannot be used."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from docker_engine import DockerEngine
from docker_image import ensure_image
from nightherd.model.containers.image import FLEET_LABEL
from nightherd.model.ids import ExecutionId
from nightherd.runtimes.container.containers import FOLDER_LABEL, Wanted
from nightherd.runtimes.container.place import ContainerPlace
from nightherd.runtimes.container.rescue import end_containers
from runtimes.container.container_stage import Boxes
from runtimes.container.test_container_ends import state_of
from runtimes.container.test_container_reuse import kept, used


def of_job(wanted: Wanted, execution: str) -> Wanted:
    return replace(wanted, execution=execution)


def test_rescue_of_a_second_job_of_a_session_leaves_the_container_of_the_first(
    boxes: Boxes,
) -> None:
    """Two jobs of a session at once: the second asks for the container of the first, and gets another one."""
    other = "job-2025-03-04-def456.1"

    async def both() -> tuple[Mapping[ExecutionId, str], str]:
        async with boxes.opened(kept(boxes)) as first:
            async with boxes.opened(of_job(kept(boxes), other)) as second:
                assert first.id != second.id
            left = await end_containers(boxes.state / "containers", [ExecutionId(other)])
            return left, (await first.run("echo alive"))[0]

    assert anyio.run(both) == ({}, "alive\n")


def test_container_that_was_used_again_is_that_of_the_last_job(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    last = "job-2025-03-04-def456.1"
    first = anyio.run(used, boxes, kept(boxes))
    assert anyio.run(used, boxes, of_job(kept(boxes), last)) == first

    anyio.run(end_containers, boxes.state / "containers", [ExecutionId(last)])

    assert state_of(docker_engine, first) == "gone"


@pytest.mark.parametrize(
    "command",
    [
        "rm /run/nightherd/keeper.sock",
        "mv /run/nightherd/keeper.sock /run/nightherd/other.sock",
        "ln -sf other.sock /run/nightherd/keeper.sock",
    ],
)
def test_container_whose_keeper_cannot_be_reached_any_more_is_not_kept(
    boxes: Boxes, docker_engine: DockerEngine, command: str
) -> None:
    """The next job would wait for its socket, and nobody could remove it before it ends by itself."""

    async def sabotage() -> str:
        async with boxes.opened(kept(boxes)) as box:
            await box.run(command)
            return box.id

    assert state_of(docker_engine, anyio.run(sabotage)) == "gone"


def test_container_that_another_job_takes_at_once_is_left_to_it(
    boxes: Boxes, docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = ContainerPlace.release
    next_jobs: list[ContainerPlace] = []

    async def release_and_be_overtaken(place: ContainerPlace, wait: timedelta) -> bool:
        is_released = await release(place, wait)
        assert await anyio.to_thread.run_sync(place.lease, time.monotonic() + 60)
        next_jobs.append(place)
        place.close = lambda: None  # type: ignore[method-assign] # that of the job before
        return is_released

    monkeypatch.setattr(ContainerPlace, "release", release_and_be_overtaken)
    container = anyio.run(used, boxes, kept(boxes))

    assert state_of(docker_engine, container) == "running"
    ContainerPlace.close(next_jobs[0])


def test_label_of_a_container_leads_to_no_directory_elsewhere(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    """A container with our labels may be made by others, or get them from its image."""
    precious = boxes.root / "precious"
    precious.mkdir()
    labels = {FLEET_LABEL: boxes.fleet, FOLDER_LABEL: "../../precious"}
    body = {"Image": boxes.image, "Entrypoint": ["true"], "Labels": labels}
    made = docker_engine.json("POST", "/containers/create", body)["Id"]
    docker_engine.json("POST", f"/containers/{made}/start")
    docker_engine.json("POST", f"/containers/{made}/wait")

    anyio.run(used, boxes, boxes.wanted())

    assert precious.is_dir()
    assert state_of(docker_engine, made) == "gone"


def test_job_that_was_done_before_its_engine_died_is_done(
    own_docker_engine: DockerEngine, tmp_path: Path
) -> None:
    boxes = Boxes(tmp_path, own_docker_engine.socket_path, ensure_image(own_docker_engine))

    async def run() -> str:
        async with boxes.opened(kept(boxes)) as box:
            said, _ = await box.run("echo done")
            await anyio.to_thread.run_sync(own_docker_engine.kill)
            return said

    assert anyio.run(run) == "done\n"
    own_docker_engine.start()
