"""`ephemeral: false`: which container the next job of a session gets, and which ones end."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd.runtimes.container.containers import Wanted
from nightherd.runtimes.container.library import FILES, LIBRARY, provide_library
from runtimes.container.container_stage import Boxes
from runtimes.container.test_container_ends import state_of, wait_for_end


async def used(boxes: Boxes, wanted: Wanted) -> str:
    """The container of a job that is over."""
    async with boxes.opened(wanted) as box:
        assert (await box.run("echo hello"))[0] == "hello\n"
        return box.id


def kept(boxes: Boxes, **more: Any) -> Wanted:
    return boxes.wanted(**{"is_ephemeral": False, **more})


def test_session_keeps_its_container_and_another_session_gets_another(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    first = anyio.run(used, boxes, kept(boxes))
    again = anyio.run(used, boxes, kept(boxes))
    other = anyio.run(used, boxes, kept(boxes, session="session-2"))

    assert first == again != other
    assert state_of(docker_engine, first) == state_of(docker_engine, other) == "running"


def test_files_in_memory_and_processes_of_one_job(boxes: Boxes) -> None:
    """What a job leaves in the container's own directories is there for the next; processes are not."""

    async def jobs() -> str:
        async with boxes.opened(kept(boxes)) as box:
            await box.run("echo kept > /tmp/file; sleep 600 >/dev/null 2>&1 &", may_outlive=True)
        async with boxes.opened(kept(boxes)) as box:
            return (await box.run("cat /tmp/file; cat /proc/[0-9]*/comm | grep -c sleep"))[0]

    assert anyio.run(jobs) == "kept\n0\n"


def test_container_is_replaced_when_its_policy_changed(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    first = anyio.run(used, boxes, kept(boxes))
    second = anyio.run(used, boxes, kept(boxes, pids_limit=99))

    assert first != second
    assert state_of(docker_engine, first) == "gone"


def test_container_is_replaced_when_its_image_was_built_again(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    """A job begins with the image that has the name now, not with what an hour ago had it."""
    repository = "again"
    docker_engine.json("POST", f"/images/{boxes.image}/tag?repo={repository}&tag=latest")
    first = anyio.run(used, boxes, kept(boxes, image=f"{repository}:latest"))
    same = anyio.run(used, boxes, kept(boxes, image=f"{repository}:latest"))
    built = f"/commit?container={first}&repo={repository}&tag=latest&changes=LABEL+built=again"
    docker_engine.json("POST", built, {})
    second = anyio.run(used, boxes, kept(boxes, image=f"{repository}:latest"))

    assert first == same != second
    assert state_of(docker_engine, first) == "gone"


def test_container_is_replaced_when_nightherd_was_upgraded(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    """What runs inside and what talks to it are never of different versions."""
    upgraded = b"# of the next version\n"

    def provide_next(root: Path) -> Path:
        library = root / "next"
        if not library.is_dir():
            shutil.copytree(provide_library(root), library)
            with (library / "nightherd" / FILES[0]).open("ab") as file:
                file.write(upgraded)
        return library

    async def used_by_next(wanted: Wanted) -> tuple[str, str]:
        async with boxes.opened(wanted, provide=provide_next) as box:
            return box.id, (await box.run(f"tail -n 1 {LIBRARY}/nightherd/{FILES[0]}"))[0]

    first = anyio.run(used, boxes, kept(boxes))
    second, line = anyio.run(used_by_next, kept(boxes))

    assert first != second
    assert line.encode() == upgraded
    assert state_of(docker_engine, first) == "gone"


def test_ended_container_is_replaced(boxes: Boxes, docker_engine: DockerEngine) -> None:
    first = anyio.run(used, boxes, kept(boxes))
    docker_engine.json("POST", f"/containers/{first}/kill")
    second = anyio.run(used, boxes, kept(boxes))

    assert first != second
    assert state_of(docker_engine, first) == "gone"


def test_job_that_failed_leaves_no_container(boxes: Boxes, docker_engine: DockerEngine) -> None:
    seen: list[str] = []

    async def fail() -> None:
        async with boxes.opened(kept(boxes)) as box:
            seen.append(box.id)
            raise ValueError("as runs do")

    with pytest.raises(ValueError, match="as runs do"):
        anyio.run(fail)

    assert state_of(docker_engine, seen[0]) == "gone"


def test_two_jobs_of_one_session_at_once_have_two_containers(boxes: Boxes) -> None:
    async def both() -> tuple[str, str]:
        async with boxes.opened(kept(boxes)) as one, boxes.opened(kept(boxes)) as two:
            assert (await one.run("echo one"))[0] == "one\n"
            return one.id, two.id

    one, two = anyio.run(both)

    assert one != two


def test_no_more_than_max_containers_wait(boxes: Boxes, docker_engine: DockerEngine) -> None:
    ids = [
        anyio.run(used, boxes, kept(boxes, session=f"session-{number}", max_containers=2))
        for number in range(4)
    ]

    states = [state_of(docker_engine, one) for one in ids]
    assert states.count("running") == 2
    assert states.count("gone") == 2
    assert states[-1] == "running"


@pytest.mark.parametrize("is_ephemeral", [True, False])
def test_containers_of_running_jobs_are_not_counted_or_removed(
    boxes: Boxes, docker_engine: DockerEngine, is_ephemeral: bool
) -> None:
    async def run() -> tuple[str, str]:
        busy = boxes.wanted(session="session-1", is_ephemeral=is_ephemeral, max_containers=1)
        async with boxes.opened(busy) as older:
            other = await used(boxes, kept(boxes, session="session-2", max_containers=1))
            return (await older.run("echo alive"))[0], other

    said, other = anyio.run(run)

    assert said == "alive\n"
    if is_ephemeral:
        assert state_of(docker_engine, other) == "running"


def test_changed_policy_does_not_end_a_job_that_runs(boxes: Boxes) -> None:
    async def run() -> str:
        async with boxes.opened(kept(boxes)) as older:
            await used(boxes, kept(boxes, pids_limit=99))
            return (await older.run("echo alive"))[0]

    assert anyio.run(run) == "alive\n"


def test_container_that_another_worker_is_making_is_left_alone(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    body = {
        "Image": boxes.image,
        "Entrypoint": ["sleep", "600"],
        "Labels": {
            "nightherd.fleet": boxes.fleet,
            "nightherd.agent": "tester",
            "nightherd.session": "session-1",
        },
    }
    made = docker_engine.json("POST", "/containers/create", body)["Id"]
    try:
        anyio.run(used, boxes, kept(boxes))

        assert state_of(docker_engine, made) == "created"
    finally:
        docker_engine.request("DELETE", f"/containers/{made}?force=true")


def test_idle_container_ends_by_itself(
    boxes: Boxes, docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = timedelta(milliseconds=300)
    monkeypatch.setattr("nightherd.runtimes.container.containers.IDLE", idle)

    container = anyio.run(used, boxes, kept(boxes))

    wait_for_end(docker_engine, container)


def test_container_of_another_fleet_is_not_used(boxes: Boxes) -> None:
    first = anyio.run(used, boxes, kept(boxes))
    boxes.fleet = "another-fleet"

    assert anyio.run(used, boxes, kept(boxes)) != first
