"""Jobs in containers under the daemon: `container_id` is true, also after everything of nightherd was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from docker_engine import DockerEngine
from runtimes.container.container_herd import ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

pytestmark = pytest.mark.timeout(200)
HELD = "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; echo continued"


def mirrored_id(herd: ContainerHerd) -> str | None:
    """The container that `state.yaml` names."""
    try:
        state = yaml.safe_load((herd.root / ".nightherd" / "state.yaml").read_text())
    except OSError:
        return None
    found = ((state or {}).get("agents") or {}).get("player") or {}
    return found.get("container_id")


def listed_id(herd: ContainerHerd) -> str | None:
    """The container that the command names."""
    done = herd.nightherd("agent", "list", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["data"]
    found: str | None = row["container_id"]
    return found


def family(pid: int) -> set[int]:
    """A process and all below it."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid}.union(*(family(int(child)) for child in below))


def kill_all(daemon: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the daemon and every process that it has started here."""
    for pid in family(daemon.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    daemon.wait()


def test_container_id_is_true_while_a_job_runs_after_a_kill_and_at_the_end(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    # The call that is cut off is not made again: another one holds the second container.
    steps = [bash("echo first >> steps"), bash(HELD), bash(HELD)]
    script: list[dict[str, Any]] = [*steps, {"say": "done"}]
    agents = [{"name": "player", "script": script}]
    herd = ContainerHerd(tmp_path, docker_engine, container_image, agents)
    with herd.started("start") as daemon:
        wait_until((tmp_path / ".nightherd" / "state.yaml").exists)
        assert herd.nightherd("run", "player", "-p", "go", "--detach").returncode == 0
        first = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        wait_until(lambda: mirrored_id(herd) == first)
        assert listed_id(herd) == first
        (herd.work / "begun").unlink()
        kill_all(daemon)
        wait_until(lambda: state_of(docker_engine, first) in ("exited", "gone"))
    with herd.started("start") as daemon:
        wait_until(lambda: len(herd.container_ids()) == 2)
        second = herd.container_ids()[1]
        wait_until(lambda: mirrored_id(herd) == second)
        assert listed_id(herd) == second
        assert [one["Id"] for one in herd.containers()] == [second]
        (herd.work / "go").touch()
        herd.wait_until_completed()
        wait_until(lambda: herd.containers() == [])
        wait_until(lambda: mirrored_id(herd) is None)
        assert listed_id(herd) is None
        daemon.terminate()
        daemon.wait()

    assert state_of(docker_engine, first) == "gone"
    assert (herd.work / "steps").read_text() == "first\n"
