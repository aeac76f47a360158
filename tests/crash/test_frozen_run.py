"""A `run` that is frozen for longer than its lease continues its job, or follows it, and ends with its exit code."""

from __future__ import annotations

import fcntl
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crash import native_trials
from crash.ground import Ground
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import ToolResultEvent
from nightherd.testing.fork_server import Ended, Trial
from nightherd.wiring.stores import open_reader

PATIENCE_S = 60.0
FLEET = """\
lease: 500ms
heartbeat: 100ms
agents:
  - name: herder
    runtime: scripted
    session: {{auto_resume: {auto_resume}}}
    allowed_tools: [Bash]
    script:
      - tool: Bash
        input: {{command: "echo x >> began; while [ ! -e go ]; do sleep 0.02; done"}}
      - tool: Bash
        input: {{command: "echo x >> second"}}
      - say: done
"""

MakeGround = Callable[[str], Ground]


def wait_for(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"{what} never came"
        time.sleep(0.01)


def begin(ground: Ground) -> tuple[Trial, Trial]:
    """A `run`, and a worker that begins once it is let."""
    folder = str(ground.folder)
    words = ["run", "herder", "-p", "go", "--input", "tag=a"]
    first = {"folder": folder, "arguments": words, "shown": f"{folder}/shown"}
    words = ["worker", "--until-idle"]
    second = {"folder": folder, "arguments": words, "shown": f"{folder}/by-worker"}
    later = {**second, "after": f"{folder}/now"}
    run, worker = ground.server.begin(native_trials.COMMAND, first, later)
    return run, worker


def freeze(trial: Trial, state: Path) -> None:
    """Stop it while it does not hold the write lock, and wait until its lease is over."""
    while True:
        trial.send(signal.SIGSTOP)
        trial.wait_until_stopped()
        with (state / "write.lock").open("rb+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                trial.send(signal.SIGCONT)
    reader = open_reader(state)
    (worker,) = reader.live_workers()
    reader.close()
    wait_for(lambda: time.monotonic() > worker.deadline, "the end of the lease")


@dataclass(frozen=True)
class Frozen:
    """A `run` that was frozen in its first tool call, and whose lease is over."""

    ground: Ground
    run: Trial
    worker: Trial

    def thaw(self) -> Ended:
        """Let it go on to its end."""
        self.run.send(signal.SIGCONT)
        return self.run.wait(PATIENCE_S)

    def job(self) -> Job:
        return self.ground.jobs()["a"]


Freeze = Callable[..., Frozen]


@pytest.fixture
def frozen(make_ground: MakeGround) -> Freeze:
    """Makes one."""

    def make(auto_resume: str = "true") -> Frozen:
        ground = make_ground(FLEET.format(auto_resume=auto_resume))
        run, worker = begin(ground)
        wait_for((ground.folder / "began").exists, "the first call")
        freeze(run, ground.state)
        (ground.folder / "go").touch()
        return Frozen(ground, run, worker)

    return make


def test_it_continues_when_nobody_else_did(frozen: Freeze) -> None:
    case = frozen()

    ended, job = case.thaw(), case.job()

    shown, folder = case.ground.shown(), case.ground.folder
    assert (ended.status, job.status) == (0, JobStatus.COMPLETED), shown
    assert (job.epoch, job.restart_count) == (2, 1)
    assert (folder / "began").read_text() == "x\n", "the call that was cut off is not repeated"
    assert (folder / "second").read_text() == "x\n"
    results = [one for one in case.ground.journal(job) if isinstance(one, ToolResultEvent)]
    assert [one.success for one in results] == [False, True]
    assert "stopped for longer than its lease" in shown


def test_it_follows_the_job_that_another_worker_finished(frozen: Freeze) -> None:
    case = frozen()
    (case.ground.folder / "now").touch()
    assert case.worker.wait(PATIENCE_S).status == 0

    ended, job = case.thaw(), case.job()

    assert (ended.status, job.status, job.epoch) == (0, JobStatus.COMPLETED, 2)
    assert (case.ground.folder / "second").read_text() == "x\n"
    assert "> Bash: echo x >> second" in case.ground.shown()


def test_it_says_that_the_job_was_interrupted_when_it_may_not_continue(frozen: Freeze) -> None:
    case = frozen("false")

    ended, job = case.thaw(), case.job()

    assert (ended.status, job.status, job.error_code) == (1, JobStatus.FAILED, "interrupted")
    assert "interrupted: " in case.ground.shown()
    assert not (case.ground.folder / "second").exists()


def test_it_can_still_be_cancelled(frozen: Freeze) -> None:
    case = frozen()
    case.run.send(signal.SIGINT)

    ended, job = case.thaw(), case.job()

    assert (ended.status, job.status) == (130, JobStatus.CANCELLED), case.ground.shown()
