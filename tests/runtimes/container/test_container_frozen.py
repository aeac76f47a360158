"""Workers that are frozen for almost as long as their lease: what they ran is ended, and the job goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from docker_engine import DockerEngine
from runtimes.container.container_herd import ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_there, is_whole, wait_until

pytestmark = pytest.mark.timeout(200)


@pytest.mark.parametrize(
    "words", [("run", "player", "-p", "go"), ("worker",)], ids=["run", "worker"]
)
@pytest.mark.parametrize("is_inside", [True, False], ids=["inside", "outside"])
def test_job_continues_after_its_worker_was_frozen_until_what_it_ran_had_ended(
    docker_engine: DockerEngine,
    container_image: str,
    tmp_path: Path,
    is_inside: bool,
    words: tuple[str, ...],
) -> None:
    script = [bash("echo $$ > begun; sleep 600"), bash("echo last >> steps"), {"say": "done"}]
    agents = [{"name": "player", "script": script}]
    herd = ContainerHerd(tmp_path, docker_engine, container_image, agents, enabled=is_inside)
    if words == ("worker",):
        assert herd.nightherd("run", "player", "-p", "go", "--detach").returncode == 0

    with herd.started(*words) as worker:
        wait_until(lambda: is_whole(herd.work / "begun"))
        container = herd.wait_for_container() if is_inside else None
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            if container is not None:
                wait_until(lambda: state_of(docker_engine, container) in ("exited", "gone"))
            else:
                wait_until(lambda: not is_there(int((herd.work / "begun").read_text())))
        finally:
            # Just before the lease is over; on a slow machine after that, when it is rescued.
            os.kill(worker.pid, signal.SIGCONT)
        herd.wait_until_completed()
        wait_for_end(worker, words)

    assert herd.results()[0].startswith("interrupted")
    assert (herd.work / "steps").read_text() == "last\n"
    assert herd.containers() == []


def wait_for_end(worker: subprocess.Popen[bytes], words: tuple[str, ...]) -> None:
    """Wait for a `run`, which ends with its job; a `worker` goes on."""
    if words[0] == "run":
        assert worker.wait() == 0
