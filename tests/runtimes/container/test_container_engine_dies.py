"""The engine itself dies in the middle of a turn: a command does not notice, and no job is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from docker_engine import DockerEngine
from docker_image import ensure_image
from runtimes.container.container_herd import ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

HELD = "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; echo continued"
STEPS = (bash("echo first >> steps"), bash(HELD), bash("echo last >> steps"))


def herd_of(engine: DockerEngine, root: Path, *steps: dict[str, Any]) -> ContainerHerd:
    """A fleet of one agent that takes these steps and is done."""
    root.mkdir()
    agents = [{"name": "player", "script": [*steps, {"say": "done"}]}]
    return ContainerHerd(root, engine, ensure_image(engine), agents)


@pytest.mark.timeout(200)
def test_jobs_survive_a_dead_engine_and_its_restart(
    own_docker_engine: DockerEngine, tmp_path: Path
) -> None:
    herd = herd_of(own_docker_engine, tmp_path / "project", *STEPS)

    with herd.started("run", "player", "-p", "the engine is dead while this ends") as worker:
        herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        own_docker_engine.kill()
        (herd.work / "go").touch()
        assert worker.wait() == 0
    assert herd.job()["status"] == "completed"
    assert herd.results()[1].strip() == "continued"
    assert (herd.work / "steps").read_text() == "first\nlast\n"

    waiting = herd.nightherd("run", "player", "-p", "there is no engine", "--detach")
    assert waiting.returncode == 0, waiting.stderr
    for name in ("begun", "go", "steps"):
        (herd.work / name).unlink()
    own_docker_engine.start()
    with herd.started("worker"):
        wait_until(lambda: is_whole(herd.work / "begun"))
        own_docker_engine.kill()
        own_docker_engine.start()
        (herd.work / "go").touch()
        herd.wait_for_statuses(lambda statuses: set(statuses.values()) == {"completed"})
        wait_until(lambda: herd.containers() == [])
    assert (herd.work / "steps").read_text() == "first\nlast\n"


@pytest.mark.timeout(200)
def test_job_continues_when_its_engine_is_restarted_in_the_middle_of_a_turn(
    own_docker_engine: DockerEngine, tmp_path: Path
) -> None:
    herd = herd_of(own_docker_engine, tmp_path / "project", *STEPS)

    with herd.started("start") as daemon:
        wait_until((tmp_path / "project" / ".nightherd" / "state.yaml").exists)
        assert herd.nightherd("run", "player", "-p", "go", "--detach").returncode == 0
        first = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        own_docker_engine.stop()  # ends its containers
        wait_until(lambda: herd.statuses() != {} and is_cut_off(herd))
        own_docker_engine.start()
        herd.wait_until_completed()
        wait_until(lambda: herd.containers() == [])
        daemon.terminate()
        daemon.wait()

    assert (herd.work / "steps").read_text() == "first\nlast\n"
    assert herd.results()[1].startswith("interrupted")
    ids = herd.container_ids()
    assert ids[0] == first
    assert len(set(ids)) == len(ids) == 2


@pytest.mark.timeout(200)
def test_engine_that_does_not_answer_keeps_no_job_from_its_end(
    own_docker_engine: DockerEngine, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    herd = herd_of(own_docker_engine, root, bash(HELD), bash("echo again"))

    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        with own_docker_engine.frozen():
            assert herd.nightherd("jobs", "cancel", "@last").returncode == 0
            wait_until(lambda: [*herd.statuses().values()] == ["cancelled"])
            worker.wait()
    wait_until(lambda: state_of(own_docker_engine, container) in ("exited", "gone"))
    (record,) = (root / ".nightherd" / "containers").glob("*/container.json")
    os.utime(record, (0, 0))
    (herd.work / "go").touch()

    assert herd.nightherd("run", "player", "-p", "go", "--quiet").returncode == 0
    assert herd.containers() == []
    left = {path.name for path in (root / ".nightherd" / "containers").iterdir()}
    assert left == {"library", "nothing"}


def is_cut_off(herd: ContainerHerd) -> bool:
    """Whether the job has noticed that its container ended, or that there is no engine."""
    codes = {line.get("code") for line in herd.journal()}
    return bool(codes & {"container_gone", "container_engine"})
