"""Jobs in containers of a real Podman, through the socket that it has for programs of the Docker Engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine, engine_processes
from docker_image import ensure_image
from nightherd.model.containers.podman import is_podman, podman_body
from nightherd.model.doctor import EngineFacts, Level, engine_finding
from nightherd.wiring.containers import engine_facts
from runtimes.container.container_herd import USER, ContainerHerd, bash
from runtimes.container.container_stage import Boxes
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

MakeHerd = Callable[..., ContainerHerd]


@pytest.fixture
def make_herd(tmp_path: Path, podman_engine: DockerEngine) -> MakeHerd:
    """Makes a fleet whose containers Podman makes."""
    image = ensure_image(podman_engine)

    def make(*script: dict[str, Any], **more: Any) -> ContainerHerd:
        agent = {"name": "player", "script": [*script, {"say": "done"}]}
        agent.update(more.pop("agent", {}))
        return ContainerHerd(tmp_path, podman_engine, image, [agent], **more)

    return make


@pytest.mark.parametrize("runtime", ["scripted", "native"])
def test_tools_run_inside(make_herd: MakeHerd, runtime: str) -> None:
    inside = "cat /proc/1/comm; id -u; pwd; echo x > /tmp/x; echo x > $HOME/x; cat /tmp/x ~/x"
    herd = make_herd(
        bash(inside),
        {"tool": "Write", "input": {"file_path": "made.txt", "content": "one\n"}},
        {"tool": "Read", "input": {"file_path": "/workspace/made.txt"}},
        {"tool": "Read", "input": {"file_path": "/etc/passwd"}},
        agent={"runtime": runtime},
    )
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    results = herd.results()

    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert results[0].split() == ["python3", str(USER), str(herd.work), "x", "x"]
    assert (herd.work / "made.txt").stat().st_uid == USER
    assert "one" in results[2]
    assert "agent:x:1000" in results[3], "not the host's"
    assert len(herd.container_ids()) == 1
    assert herd.containers() == []


def test_container_is_hardened(make_herd: MakeHerd) -> None:
    status = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; touch /etc/made"
    herd = make_herd(bash(status))
    herd.nightherd("run", "player", "-p", "go", "--quiet")
    (result,) = herd.results()
    found = dict(line.split(":\t") for line in result.splitlines() if ":\t" in line)

    assert (found.pop("NoNewPrivs"), found.pop("Seccomp")) == ("1", "2")
    assert len(found) == 5
    assert {int(value, 16) for value in found.values()} == {0}
    assert "Read-only file system" in result


def test_cancel_ends_all_and_leaves_no_container(make_herd: MakeHerd) -> None:
    herd = make_herd(bash("for i in $(seq 50); do sleep 600 & done; echo begun > begun; wait"))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        pid = int(herd.engine.json("GET", f"/containers/{container}/json")["State"]["Pid"])
        wait_until(lambda: is_whole(herd.work / "begun"))
        assert herd.nightherd("jobs", "cancel", "@last").returncode == 0
        worker.wait()

    assert herd.job()["status"] == "cancelled"
    assert state_of(herd.engine, container) == "gone"
    assert not Path(f"/proc/{pid}").exists()
    # Only the service itself is left, once conmon has noticed.
    wait_until(lambda: engine_processes(herd.engine.home) == {herd.engine.pid})


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


def test_container_of_a_session_is_used_again(make_herd: MakeHerd) -> None:
    steps = bash("echo kept > /tmp/kept"), {"say": "one"}, {"end": True}, bash("cat /tmp/kept")
    herd = make_herd(*steps, agent={"session": {"mode": "persistent"}}, ephemeral=False)
    for _ in range(2):
        done = herd.nightherd("run", "player", "-p", "go", "--quiet")
        assert done.returncode == 0, done.stderr
    (kept,) = herd.containers()
    journals = [path.read_text() for path in herd.root.glob(".nightherd/jobs/*.jsonl")]
    outputs = [text for text in journals if '"result":"kept' in text]

    assert len(journals) == 2
    assert len(outputs) == 1
    assert all(kept["Id"] in text for text in journals)
    herd.engine.json("DELETE", f"/containers/{kept['Id']}?force=1")


def test_missing_image_is_said(make_herd: MakeHerd) -> None:
    herd = make_herd(bash("true"))
    text = (herd.root / "nightherd.yaml").read_text()
    (herd.root / "nightherd.yaml").write_text(text.replace("nightherd/test:", "nowhere/none:"))
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode != 0
    assert "the container engine has no image nowhere/none:" in done.stdout + done.stderr


def test_container_that_ends_by_itself_is_removed_all_the_same(
    podman_engine: DockerEngine, tmp_path: Path
) -> None:
    boxes = Boxes(tmp_path, podman_engine.socket_path, ensure_image(podman_engine))

    async def run() -> None:
        async with boxes.opened() as box:
            await box.run("true")

    for _ in range(12):  # Podman refused one in five of them
        anyio.run(run)
        assert podman_engine.json("GET", "/containers/json?all=1") == []


def test_doctor_names_podman(podman_engine: DockerEngine) -> None:
    facts = engine_facts(podman_engine.socket_path, {})

    assert isinstance(facts, EngineFacts)
    finding = engine_finding(facts, ["a"])
    assert finding.level is Level.OK
    assert f"Podman {facts.version} at {podman_engine.socket_path}" in finding.message


def test_owner_of_directories_in_memory_is_said_as_podman_understands_it() -> None:
    tmpfs = {"/tmp": "rw,uid=1000,gid=1000,size=1", "/data": "uid=7", "/run": "rw"}
    body = {"Image": "x", "User": "1000:1000", "HostConfig": {"Tmpfs": tmpfs, "Init": False}}

    assert podman_body(body)["HostConfig"] == {
        "Tmpfs": {"/tmp": "rw,size=1,U", "/data": "uid=7", "/run": "rw"},
        "Init": False,
    }
    assert is_podman({"Components": [{"Name": "Podman Engine"}]})
    assert not is_podman({"Components": [{"Name": "Engine"}]})
