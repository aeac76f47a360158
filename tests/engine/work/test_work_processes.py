"""Several processes, and several fleets, that take issues of one repository at the same time."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from engine.work.work_trials import SCHEDULE
from nightherd.model.jobs.job import Job, JobQuery
from nightherd.testing.fork_server import ForkServer, Trial
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.wiring.stores import open_reader
from soak import often

PATIENCE_S = 200.0
ISSUES = often(5, soak=20)
"""One is taken in each second."""
FLEET = """\
lease: 30s
heartbeat: 5s
agents:
  - name: one
    runtime: scripted
    default_prompt: go
    schedules:
      issues:
        interval: 1s
        max_overlap: 100000
        work_source: {{type: github, repo: acme/app, base_url: "{url}", auth: {{token_env: LOOPBACK_TOKEN}}}}
    script: [{{say: done}}]
"""


def write_fleet(folder: Path, api: GithubApi) -> str:
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(FLEET.format(url=api.url))
    (folder / ".env").write_text(f"LOOPBACK_TOKEN={TOKEN}\n")
    return str(folder)


def fired(trials: list[Trial]) -> int:
    return sum(line.startswith("fired") for one in trials for line in one.said())


def jobs_in(folder: str) -> list[Job]:
    reader = open_reader(Path(folder) / ".nightherd")
    found = list(reader.list_jobs(JobQuery(limit=1_000)))
    reader.close()
    return found


def issues_of(folder: str) -> list[int]:
    """The issue of each job."""
    reader = open_reader(Path(folder) / ".nightherd")
    texts = [reader.find_texts(job.id) for job in reader.list_jobs(JobQuery(limit=1_000))]
    reader.close()
    return [one.inputs["issue_number"] for one in texts if one is not None]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fleets", "processes"), [(1, 3), (3, 1)])
def test_every_issue_becomes_one_job(tmp_path: Path, fleets: int, processes: int) -> None:
    with GithubApi() as api, ForkServer(patience_s=250) as server:
        for number in range(1, ISSUES + 1):
            api.repository.open_issue(number, f"Issue {number}", "ready")
        folders = [write_fleet(tmp_path / f"fleet-{one}", api) for one in range(fleets)]
        orders = [{"folder": folder} for folder in folders for _ in range(processes)]
        trials = server.begin(SCHEDULE, *orders)
        deadline = time.monotonic() + PATIENCE_S
        while fired(trials) < ISSUES:
            assert time.monotonic() < deadline, [one.said() for one in trials]
            time.sleep(0.05)
        for one in trials:
            one.send(signal.SIGKILL)
        for one in trials:
            one.wait()

        found = Counter(number for folder in folders for number in issues_of(folder))
        assert found == dict.fromkeys(range(1, ISSUES + 1), 1)
        assert all(api.repository.labels(number) == ["agent-working"] for number in found)
        assert len(api.repository.refs) == ISSUES
        assert sum(len(jobs_in(folder)) for folder in folders) == ISSUES
