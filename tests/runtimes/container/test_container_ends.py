"""What ends a container, and that nothing in it runs on: leases, killed workers, and the engine's own commands."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from runtimes.container.container_stage import QUICK, Box, Boxes
from runtimes.container.container_worker import container_of, container_worker
from runtimes.keeper.kept_worker import is_whole, wait_until

STUBBORN = "trap '' TERM HUP INT; echo $$ > started; while :; do sleep 0.05; done"


def state_of(engine: DockerEngine, container: str) -> str:
    """As the engine says; `gone` when it knows of no such container."""
    status, raw = engine.request("GET", f"/containers/{container}/json")
    if status == 404:
        return "gone"
    return str(json.loads(raw)["State"]["Status"])


def wait_for_end(engine: DockerEngine, container: str) -> None:
    wait_until(lambda: state_of(engine, container) in ("exited", "gone"))


async def started(boxes: Boxes) -> None:
    await anyio.to_thread.run_sync(wait_until, lambda: is_whole(boxes.work / "started"))


async def interrupted(boxes: Boxes, box: Box, act: Any) -> Ending:
    """How a command that ignores signals ended, when `act` was done while it ran."""
    async with box.kept("bash", "-c", STUBBORN) as process:
        await started(boxes)
        await anyio.to_thread.run_sync(act)
        return await process.wait()


@contextmanager
def paused(engine: DockerEngine, box: Box) -> Iterator[None]:
    engine.json("POST", f"/containers/{box.id}/pause")
    try:
        yield
    finally:
        engine.json("POST", f"/containers/{box.id}/unpause")


def test_container_is_removed_with_its_directory_when_the_run_is_over(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    async def run() -> Box:
        async with boxes.opened() as box:
            assert state_of(docker_engine, box.id) == "running"
        return box

    box = anyio.run(run)

    assert state_of(docker_engine, box.id) == "gone"
    assert not box.running.place.directory.parent.exists()


def test_container_ends_with_its_lease(boxes: Boxes, docker_engine: DockerEngine) -> None:
    async def run() -> tuple[Ending, str]:
        async with boxes.opened(lease_s=2.5) as box:
            ending = await interrupted(boxes, box, lambda: None)
            await anyio.to_thread.run_sync(wait_for_end, docker_engine, box.id)
            return ending, box.id

    ending, container = anyio.run(run)

    assert ending.killed_by in (KilledBy.LEASE, KilledBy.KEEPER_GONE)
    assert ending.left == 0
    assert state_of(docker_engine, container) == "gone"


def test_heartbeats_extend_the_lease(boxes: Boxes) -> None:
    async def run() -> str:
        async with boxes.opened(lease_s=2.5) as box:
            first = time.monotonic() + 2.5
            box.running.place.send_heartbeat(first + 600)
            box.keepers.send_heartbeat(first + 600)
            # The lease that it was started with has to pass.
            await anyio.sleep(first - time.monotonic())
            return (await box.run("echo alive"))[0]

    assert anyio.run(run) == "alive\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_container_of_a_killed_worker_ends(
    boxes: Boxes, docker_engine: DockerEngine, number: int
) -> None:
    with container_worker(boxes, STUBBORN) as worker:
        container = container_of(boxes)
        wait_until(lambda: is_whole(boxes.work / "started"))
        worker.send_signal(number)
        worker.wait()

        wait_for_end(docker_engine, container)


def test_container_of_a_stopped_worker_ends_with_its_lease(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    with container_worker(boxes, STUBBORN, lease_s=4) as worker:
        container = container_of(boxes)
        wait_until(lambda: is_whole(boxes.work / "started"))
        worker.send_signal(signal.SIGSTOP)

        wait_for_end(docker_engine, container)
        worker.send_signal(signal.SIGCONT)
        worker.wait()

    assert state_of(docker_engine, container) == "gone"


def test_container_ends_when_its_lease_is_closed(boxes: Boxes, docker_engine: DockerEngine) -> None:
    async def run() -> tuple[Ending, str]:
        async with boxes.opened() as box:
            ending = await interrupted(boxes, box, box.running.place.close)
            await anyio.to_thread.run_sync(wait_for_end, docker_engine, box.id)
            return ending, box.id

    ending, container = anyio.run(run)

    assert ending.killed_by in (KilledBy.WORKER_GONE, KilledBy.KEEPER_GONE)
    assert state_of(docker_engine, container) == "gone"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/containers/{}/kill"),
        ("DELETE", "/containers/{}?force=true"),
        ("POST", "/containers/{}/stop?t=20"),
    ],
    ids=["kill", "remove", "stop"],
)
def test_command_ends_when_the_engine_ends_its_container(
    boxes: Boxes, docker_engine: DockerEngine, method: str, path: str
) -> None:
    async def run() -> tuple[Ending, str]:
        async with boxes.opened() as box:

            def act() -> None:
                status, answer = docker_engine.request(method, path.format(box.id))
                assert status == 204, answer

            ending = await interrupted(boxes, box, act)
            with pytest.raises(ConnectionError):
                await box.run("echo more")
            return ending, box.id

    ending, container = anyio.run(run)

    assert ending.left == 0
    assert state_of(docker_engine, container) == "gone"


def test_paused_container_continues(boxes: Boxes, docker_engine: DockerEngine) -> None:
    async def run() -> bytes:
        async with boxes.opened() as box:
            with paused(docker_engine, box):
                for number in range(20_000):  # more than a socket takes
                    box.running.place.send_heartbeat(time.monotonic() + 600 + number)
            async with box.kept("sh", "-c", "read line; echo got $line", stdin=-1) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                with paused(docker_engine, box):
                    await process.stdin.send(b"it\n")
                return await process.stdout.receive()

    assert anyio.run(run) == b"got it\n"


def test_command_in_a_paused_container_can_be_stopped(
    boxes: Boxes, docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("keeper.process.ANSWER_S", "keeper.process.KILL_WAIT_S", "container.place.END_S"):
        monkeypatch.setattr(f"nightherd.runtimes.{name}", 0.2)

    async def run() -> tuple[Ending, str]:
        async with boxes.opened() as box, box.kept("bash", "-c", STUBBORN) as process:
            await started(boxes)
            docker_engine.json("POST", f"/containers/{box.id}/pause")
            return await process.stop(grace=QUICK), box.id

    ending, container = anyio.run(run)

    assert ending.killed_by is KilledBy.KEEPER_GONE
    assert state_of(docker_engine, container) == "gone"
