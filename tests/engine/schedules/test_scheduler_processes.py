"""Several processes that schedule on one directory at the same time: each instant becomes one job."""

from __future__ import annotations

import signal
import time
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from nightherd.model.jobs.job import JobQuery
from nightherd.model.schedules.schedule import SlotOutcome
from nightherd.testing.fork_server import ForkServer
from nightherd.wiring.stores import open_reader

PATIENCE_S = 90.0
NAMES = ("a", "b", "c")
FLEET = """\
lease: 30s
heartbeat: 5s
agents:
  - name: one
    runtime: scripted
    default_prompt: go
    schedules:
      a: {interval: 1s, max_overlap: 100000}
      b: {cron: "* * * * * *", max_overlap: 100000}
      c: {interval: 1s, jitter: 700ms, max_overlap: 100000, catch_up: all}
    script: [{say: done}]
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_schedulers_that_race_fire_each_instant_once(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    with ForkServer(patience_s=120) as server:
        order = {"folder": str(tmp_path)}
        trials = server.begin("engine.schedules.scheduler_trials:schedule", *[order] * 3)
        deadline = time.monotonic() + PATIENCE_S
        while sum(line.startswith("fired") for one in trials for line in one.said()) < 15:
            assert time.monotonic() < deadline, [one.said() for one in trials]
            time.sleep(0.05)
        for one in trials:
            one.send(signal.SIGKILL)
        ended = [one.wait() for one in trials]

    reader = open_reader(tmp_path / ".nightherd")
    slots = [slot for name in NAMES for slot in reader.list_slots(f"one/{name}", 10_000)]
    jobs = reader.list_jobs(JobQuery(limit=10_000))
    reader.close()
    fired = Counter(slot.job_id for slot in slots if slot.outcome is SlotOutcome.JOB)
    said = Counter(
        line.split()[2] for one in ended for line in one.said if line.startswith("fired")
    )
    assert len({slot.id for slot in slots}) == len(slots)
    assert set(fired.values()) == set(said.values()) == {1}
    assert set(fired) == {job.id for job in jobs} >= set(said)
    for name in NAMES:
        due = sorted(slot.due_at for slot in slots if slot.schedule_id == f"one/{name}")
        assert {later - earlier for earlier, later in pairwise(due)} <= {timedelta(seconds=1)}
