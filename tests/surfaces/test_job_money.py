"""What a running job has used, what a tree of jobs has cost, and which calls were denied, in every view."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.jobs.test_run_processes import wait_for
from surfaces.drivers import Cli, Shell

FLEET = """\
agents:
  - name: digger
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - say: digging
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.25}
      - tool: Bash
        input: {command: "touch started; sleep 60"}
      - say: never said

  - name: boss
    runtime: scripted

    allowed_tools: [Spawn]
    default_prompt: go
    script:
      - tool: Spawn
        input: {agent: helper, prompt: first}
      - usage: {cost_usd: 0.10}
      - tool: Spawn
        input: {agent: helper, prompt: second}
      - say: done
      - usage: {cost_usd: 0.10}

  - name: helper
    runtime: scripted
    script:
      - say: helped
      - usage: {cost_usd: 0.05}

  - name: curious
    runtime: scripted
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "uptime --pretty"}
      - tool: Bash
        input: {command: "uptime --since"}
      - say: done
"""
PATIENCE_S = 60.0


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def until_paid(cli: Cli) -> Any:
    """The one job, once its row says that it has cost something."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        (job,) = cli("jobs", "--json").data
        if job["cost_usd"]:
            return job
        time.sleep(0.05)
    raise AssertionError("the row of the running job never said what it has cost")


def test_a_running_job_without_limits_shows_its_turns_and_its_cost(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start("run", "digger", "-q", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)

    listed = until_paid(cli)
    shown = cli("jobs", "show", "@last", "--json").data
    status = cli("status", "--json").data
    text = cli("status").out
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert (listed["status"], listed["turns"], listed["cost_usd"]) == ("running", 1, 0.25)
    assert (shown["turns"], shown["cost_usd"], shown["tree"]["cost_usd"]) == (1, 0.25, 0.25)
    (digger,) = [one for one in status["agents"] if one["name"] == "digger"]
    assert (digger["running_turns"], digger["running_cost_usd"]) == (1, 0.25)
    assert status["spent"]["ever_usd"] == 0.25
    assert "1 turn, $0.25 so far" in text


def test_a_job_shows_the_jobs_it_has_made_and_what_all_have_cost(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "boss", "--json").data["job_id"]

    shown = cli("jobs", "show", job_id, "--json").data
    text = cli("jobs", "show", job_id).out

    assert shown["cost_usd"] == 0.2
    assert (shown["tree"]["jobs"], shown["tree"]["cost_usd"]) == (3, 0.3)
    children = [(one["agent"], one["status"], one["cost_usd"]) for one in shown["children"]]
    assert children == [("helper", "completed", 0.05)] * 2
    assert "tree      $0.30 in 3 jobs" in text
    for child in shown["children"]:
        assert f"child     {child['id']} helper, completed, 1 turn, $0.05" in text


def test_denied_calls_are_in_every_view_of_the_job(cli: Cli, fleet: Path) -> None:
    ran = cli("run", "curious")
    result = cli("run", "curious", "--json").data
    shown = cli("jobs", "show", "@last", "--json").data
    text = cli("jobs", "show", "@last").out

    assert "2 calls denied: nightherd jobs show job-" in ran.err
    assert [one["tool_name"] for one in result["denials"]] == ["Bash", "Bash"]
    assert shown["denials"] == result["denials"]
    assert text.count("denied    Bash: ") == 2


def test_files_show_what_a_running_job_has_used(shell: Shell, cli: Cli, fleet: Path) -> None:
    process = shell.start("run", "digger", "-q", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    job = until_paid(cli)
    file = fleet / ".nightherd" / "jobs" / f"{job['id']}.yaml"
    until = time.monotonic() + PATIENCE_S
    while yaml.safe_load(file.read_text())["turns"] == 0 and time.monotonic() < until:
        time.sleep(0.05)
    found = yaml.safe_load(file.read_text())
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert (found["status"], found["turns"], found["cost_usd"]) == ("running", 1, 0.25)
