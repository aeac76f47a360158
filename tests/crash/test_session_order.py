"""Jobs of one session run in the order in which they were submitted, whatever is killed and whoever runs them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from crash import native_trials
from crash.ground import Ground, check_doctor_leaves_nothing
from nightherd.model.jobs.job import JobStatus

PATIENCE_S = 60.0
FLEET = """\
lease: 500ms
heartbeat: 100ms
agents:
  - name: herder
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    session: {mode: persistent}
    schedules:
      nightly: {interval: 1h, inputs: {tag: nightly}}
    script:
      - tool: Bash
        input: {command: "touch began; while [ ! -e go ]; do sleep 0.02; done"}
      - tool: Bash
        input: {command: "echo ${inputs.tag} >> log"}
      - say: done
"""

MakeGround = Callable[[str], Ground]


@pytest.fixture
def killed(make_ground: MakeGround) -> Ground:
    """A `run` with the tag `a` that was killed in its first tool call."""
    ground = make_ground(FLEET)
    order = {
        "folder": str(ground.folder),
        "arguments": ["run", "herder", "-p", "first", "--input", "tag=a"],
        "shown": str(ground.folder / "shown"),
    }
    (trial,) = ground.server.begin(native_trials.COMMAND, order)
    until = time.monotonic() + PATIENCE_S
    while not (ground.folder / "began").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    trial.send(signal.SIGKILL)
    trial.wait()
    (ground.folder / "go").touch()
    return ground


def document(ground: Ground, *words: str) -> Any:
    ground.command(*words, "--json")
    return json.loads(ground.shown())["data"]


def run(ground: Ground, tag: str, *words: str) -> int:
    return ground.command("run", "herder", "-p", tag, "--input", f"tag={tag}", *words).status


def told(ground: Ground) -> list[str]:
    """Whose messages are in the session, in the order in which they are shown."""
    session = ground.jobs()["a"].session_id
    assert session is not None
    shown = document(ground, "session", "show", session, "--history")
    return list(dict.fromkeys(one["job_id"] for one in shown["history"]))


def check_order(ground: Ground, *tags: str) -> None:
    """The jobs ran one after the other, in this order, in one session."""
    jobs = ground.jobs()
    assert len({jobs[tag].session_id for tag in tags}) == 1
    for tag, later in pairwise(tags):
        before, after = jobs[tag], jobs[later]
        assert (before.status, after.status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
        assert before.finished_at is not None
        assert after.started_at is not None
        assert before.finished_at <= after.started_at, f"{later} overtook {tag}"


def test_a_later_run_continues_the_interrupted_job_first(killed: Ground) -> None:
    assert run(killed, "b") == 0, killed.shown()

    check_order(killed, "a", "b")
    assert killed.jobs()["a"].restart_count == 1
    assert (killed.folder / "log").read_text().split() == ["a"], "the second call of a, none of b"
    assert "goes first in session" in killed.shown()
    assert told(killed) == [killed.jobs()[tag].id for tag in ("a", "b")]
    check_doctor_leaves_nothing(killed)


def test_a_worker_keeps_the_order_whatever_is_more_important(killed: Ground) -> None:
    assert run(killed, "b", "-d", "--priority", "9") == 0
    assert killed.command("schedule", "run", "herder/nightly").status == 0
    assert run(killed, "c", "-d", "--priority", "10") == 0

    assert killed.command("worker", "--until-idle").status == 0, killed.shown()

    check_order(killed, "a", "b", "nightly", "c")
    check_doctor_leaves_nothing(killed)


def test_queued_jobs_wait_for_a_suspended_one_and_say_so(killed: Ground) -> None:
    job_id = killed.jobs()["a"].id
    assert run(killed, "b", "-d", "--priority", "9") == 0
    # It is interrupted still; once it goes on, it comes to its new limit after its next turn.
    assert killed.command("jobs", "resume", job_id, "--raise", "turns=2", "-d").status == 0

    assert killed.command("worker", "--until-idle").status == 0

    jobs = killed.jobs()
    assert (jobs["a"].status, jobs["b"].status) == (JobStatus.SUSPENDED, JobStatus.PENDING)
    waits_for = document(killed, "jobs", "show", jobs["b"].id)["waits_behind"]
    assert (waits_for["job_id"], waits_for["status"]) == (job_id, "suspended")
    killed.command("jobs", "show", jobs["b"].id)
    assert f"{job_id} goes first in session" in killed.shown()
    assert run(killed, "c") == 5, "a new run is refused"
    assert killed.command("jobs", "resume", job_id, "--raise", "turns=9").status == 0
    assert killed.command("worker", "--until-idle").status == 0
    check_order(killed, "a", "b")
