"""A disk that is full for a while: the daemon and workers stay up, say so, and go on when there is room."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.pasture import TARGET, Pasture, wait_for
from daemon.test_daemon_process import hand_in
from nightherd.host.process import start_time
from nightherd.model.jobs.job import JobStatus
from nightherd.state.agreement import differences
from nightherd.testing.fork_server import ForkServer, Trial
from nightherd.wiring.stores import system_clock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FLEET = """\
lease: 1s
heartbeat: 200ms
agents:
  - name: quick
    runtime: scripted
    default_prompt: go
    instances: {max_concurrent: 3}
    schedules:
      often: {interval: 1s}
    script:
      - say: done
"""


SLOW = """\
lease: 30s
agents:
  - name: slow
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "touch BEGAN; while [ ! -e GO ]; do sleep 0.05; done"}
      - say: done
"""


def fill(disk: Path) -> Path:
    """Take all the room there is, also what freed pages leave."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        size = 64 * 1024
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    return filler


def is_alive(trial: Trial) -> bool:
    return start_time(trial.pid) is not None


def finished(pasture: Pasture) -> int:
    return len(pasture.jobs(JobStatus.COMPLETED))


@pytest.fixture
def pasture(small_disk: Path, daemon_server: ForkServer) -> Iterator[Pasture]:
    yield Pasture(small_disk, daemon_server, FLEET)
    daemon_server.begin(TARGET)  # none, and so whatever still runs on the disk ends


def said(trial: Trial, *words: str) -> bool:
    return any(all(word in line for word in words) for line in trial.said())


def fill_for_a_while(pasture: Pasture, trial: Trial, *words: str) -> None:
    """Fill the disk until the process says these words, then make room again."""
    filler = fill(pasture.folder)
    wait_for(lambda: said(trial, *words) or not is_alive(trial), "the disk to be noticed")
    filler.unlink()
    assert is_alive(trial), trial.said()


def test_daemon_outlives_a_full_disk_says_so_and_goes_on(pasture: Pasture) -> None:
    trial = pasture.daemon()
    wait_for(lambda: finished(pasture) > 0, "the first job")

    fill_for_a_while(pasture, trial, "no worker can begin", "space")

    before = finished(pasture)
    wait_for(lambda: finished(pasture) > before + 1 or not is_alive(trial), "jobs after that")
    assert said(trial, "is running again")
    trial.send(signal.SIGTERM)
    assert trial.wait().said[-1] == "done"
    assert {job.status for job in pasture.jobs()} == {JobStatus.COMPLETED}
    assert differences(pasture.state, at=system_clock().now()) == []


def test_daemon_that_waits_for_room_still_stops_when_told(pasture: Pasture) -> None:
    trial = pasture.daemon()
    filler = fill(pasture.folder)
    wait_for(lambda: said(trial, "no worker can begin") or not is_alive(trial), "it to notice")

    trial.send(signal.SIGTERM)

    assert trial.wait().said[-1] == "done"
    filler.unlink()


def test_worker_outlives_a_full_disk_and_takes_jobs_again(pasture: Pasture) -> None:
    (trial,) = pasture.begin(is_relay=True)
    wait_for(lambda: said(trial, "is running"), "the worker")

    fill_for_a_while(pasture, trial, "trying again until it works")

    hand_in(pasture, "quick")
    wait_for(lambda: finished(pasture) == 1 or not is_alive(trial), "the job")
    assert is_alive(trial), trial.said()
    assert differences(pasture.state, at=system_clock().now()) == []


def test_job_in_the_middle_of_a_tool_continues_after_the_disk_was_full(
    pasture: Pasture, tmp_path: Path
) -> None:
    pasture.rewrite(
        SLOW.replace("GO", str(tmp_path / "go")).replace("BEGAN", str(tmp_path / "began"))
    )
    (trial,) = pasture.begin(is_relay=True)
    wait_for(lambda: said(trial, "is running"), "the worker")
    job_id = hand_in(pasture, "slow")
    wait_for((tmp_path / "began").exists, "the tool")

    filler = fill(pasture.folder)
    (tmp_path / "go").touch()
    wait_for(lambda: said(trial, job_id, "pace"), "the failed record")
    filler.unlink()

    wait_for(lambda: finished(pasture) == 1, "the job")
    (job,) = pasture.jobs()
    assert job.id == job_id
    assert differences(pasture.state, at=system_clock().now()) == []
