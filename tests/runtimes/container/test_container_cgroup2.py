"""Jobs in containers of an engine with cgroup v2, as on every newer machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docker_engine import DockerEngine
from docker_image import ensure_image
from nightherd.model.containers.engine_traits import LIMITS
from nightherd.model.doctor import EngineFacts, Level, engine_finding
from nightherd.wiring.containers import engine_facts
from runtimes.container.container_herd import USER, ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

MakeHerd = Callable[..., ContainerHerd]


@pytest.fixture
def make_herd(tmp_path: Path, cgroup2_engine: DockerEngine) -> MakeHerd:
    """Makes a fleet of one agent."""
    image = ensure_image(cgroup2_engine)

    def make(*script: dict[str, Any], **more: Any) -> ContainerHerd:
        agent = {"name": "player", "script": [*script, {"say": "done"}]}
        return ContainerHerd(tmp_path, cgroup2_engine, image, [agent], **more)

    return make


def unlimited(engine: DockerEngine) -> set[str]:
    """What the engine cannot limit: on a machine that has cgroup v1 too, the controllers are there."""
    info = engine.json("GET", "/info")
    return {what for field, what in LIMITS.items() if info[field] is False}


def test_tools_run_inside_and_see_only_their_own_group(
    make_herd: MakeHerd, cgroup2_engine: DockerEngine
) -> None:
    herd = make_herd(
        bash("cat /proc/1/comm; id -u; cat /proc/self/cgroup; echo 1 > /sys/fs/cgroup/cgroup.procs")
    )
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    (result,) = herd.results()
    warnings = [line for line in herd.journal() if line.get("subtype") == "warning"]

    assert cgroup2_engine.json("GET", "/info")["CgroupVersion"] == "2"
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert result.split()[:2] == ["python3", str(USER)]
    assert "0::/\n" in result
    assert "Read-only file system" in result
    assert herd.containers() == []
    if unlimited(cgroup2_engine):
        assert [line["extra"]["code"] for line in warnings] == ["container_unlimited"]
        assert all(what in warnings[0]["content"] for what in unlimited(cgroup2_engine))
    else:
        assert warnings == []


def test_cancel_ends_all_that_runs_inside(make_herd: MakeHerd) -> None:
    many = "for i in $(seq 200); do sleep 600 & done; echo begun > begun; wait"
    herd = make_herd(bash(many))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        assert herd.nightherd("jobs", "cancel", "@last").returncode == 0
        worker.wait()

    assert herd.job()["status"] == "cancelled"
    assert state_of(herd.engine, container) == "gone"


def test_job_of_a_killed_worker_continues_in_a_new_container(make_herd: MakeHerd) -> None:
    held = "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done"
    herd = make_herd(bash("echo first >> steps"), bash(held))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        worker.kill()
        worker.wait()
        wait_until(lambda: state_of(herd.engine, container) in ("exited", "gone"))
    (herd.work / "go").touch()
    with herd.started("worker"):
        herd.wait_until_completed()
        wait_until(lambda: herd.containers() == [])

    assert len(set(herd.container_ids())) == 2
    assert (herd.work / "steps").read_text() == "first\n"


def test_doctor_says_what_the_engine_does_not_limit(cgroup2_engine: DockerEngine) -> None:
    facts = engine_facts(cgroup2_engine.socket_path, {})

    assert isinstance(facts, EngineFacts)
    finding = engine_finding(facts, ["a"])
    missing = unlimited(cgroup2_engine)
    assert finding.level is (Level.WARNING if missing else Level.OK)
    assert f"Docker {facts.version} at {cgroup2_engine.socket_path}, as root, cgroup v2" in (
        finding.message
    )
    assert ("does not limit" in finding.message) is bool(missing)
    assert all(what in finding.message for what in missing)
