"""What workflows leave in files and lists of agents: phases are named, and what runs their commands is no agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nightherd.files.yaml_load import load_yaml
from surfaces.drivers import Cli

AGENT = """\
  - name: {name}
    runtime: scripted
    default_prompt: hi
    script: [{{say: "Hello."}}]
"""
WORKFLOWS = """\
workflows:
  build:
    on:
      schedules:
        hourly: {cron: "0 * * * *"}
    phases:
      - {name: compile, bash: "test -f ok"}
      - {name: greet, agent: greeter, prompt: you, depends_on: [compile]}
  ship:
    phases:
      - {name: ask, gate: {summary: "Ship it?"}}
      - {name: greet, agent: greeter, prompt: you, depends_on: [ask]}
"""
WITHOUT = "agents:\n" + AGENT.format(name="other")
FLEET = WITHOUT + AGENT.format(name="greeter") + WORKFLOWS


@pytest.fixture
def state(fleet: Path) -> Path:
    """The state directory of a fleet with two workflows."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    (fleet / "ok").touch()
    return fleet / ".nightherd"


def phases(cli: Cli, run: str) -> dict[str, str]:
    """The jobs of the run's phases."""
    shown = cli("runs", "show", run, "--json").data
    return {node["path"]: node["job_id"] for node in shown["nodes"]}


def findings(cli: Cli) -> list[dict[str, Any]]:
    checks = cli("doctor", "--verify", "--json").data["checks"]
    around = ("git", "clock", "runtimes", "claude")
    return [one for check in checks if check["name"] not in around for one in check["findings"]]


def test_the_file_of_a_job_names_its_run_and_phase(state: Path, cli: Cli) -> None:
    run = cli("workflow", "run", "build", "--json").data["id"]

    files = {
        phase: load_yaml((state / "jobs" / f"{job}.yaml").read_text())
        for phase, job in phases(cli, run).items()
    }

    assert {name: (one["workflow_run_id"], one["phase"]) for name, one in files.items()} == {
        "compile": (run, "compile"),
        "greet": (run, "greet"),
    }
    assert files["compile"]["agent"] == "workflow:commands"


def test_what_runs_commands_is_listed_nowhere_as_an_agent(state: Path, cli: Cli) -> None:
    cli("workflow", "run", "build", "--json")

    mirrored = load_yaml((state / "state.yaml").read_text())
    listed = cli("agent", "list", "--json").data
    status = cli("status", "--json").data

    assert list(mirrored["agents"]) == ["greeter", "other"]
    assert sorted(one["name"] for one in listed) == ["greeter", "other"]
    assert sorted(one["name"] for one in status["agents"]) == ["greeter", "other"]
    assert "not in the fleet file" not in cli("status").out
    names = {path.stem for path in (state / "sessions").glob("*.json")}
    assert {name for name in names if not name.startswith("sess-")} == {"greeter"}
    assert findings(cli) == []


def test_the_log_of_commands_is_read_by_its_name(state: Path, cli: Cli) -> None:
    run = cli("workflow", "run", "build", "--json").data["id"]

    logged = cli("logs", "workflow:commands")

    assert (state / "logs" / "workflow:commands.log").is_file()
    assert logged.code == 0
    assert phases(cli, run)["compile"] in logged.out


def test_a_failed_command_makes_nobody_an_agent_with_an_error(state: Path, cli: Cli) -> None:
    (state.parent / "ok").unlink()

    assert cli("workflow", "run", "build", "--json").data["status"] == "failed"

    status = cli("status", "--json").data
    assert [one["status"] for one in status["agents"]] == ["idle", "idle"]
    assert status["inbox"]["kinds"]["failure"] == 1, "the run asks, its phase does not"


def test_jobs_of_commands_count_among_those_that_wait(state: Path, cli: Cli) -> None:
    cli("workflow", "run", "build", "--detach", "--json")

    status = cli("status", "--json").data

    assert status["jobs"]["waiting"] == 1
    assert [one["waiting"] for one in status["agents"]] == [0, 0]
    assert findings(cli) == [], "a command that waits for a worker lacks no agent"


def test_state_json_says_which_phase_a_job_carries_out(state: Path, cli: Cli) -> None:
    run = cli("workflow", "run", "build", "--json").data["id"]

    documents = [
        json.loads(cli("checkpoint", "show", job, "--state").out)
        for job in phases(cli, run).values()
    ]

    assert [one["directive"] for one in documents] == ["build:compile", "build:greet"]


def test_a_phase_whose_agent_left_the_fleet_waits_and_says_so(state: Path, cli: Cli) -> None:
    run = cli("workflow", "run", "ship", "--json").data["id"]
    (state.parent / "nightherd.yaml").write_text(WITHOUT)

    assert cli("inbox", "approve", "@last").code == 0
    cli("worker", "--until-idle")

    shown = cli("runs", "show", run, "--json").data
    (wait,) = shown["waits_for"]
    assert (shown["status"], wait["phase"], wait["for"]) == ("running", "greet", "worker")
    assert "the fleet file has no agent 'greeter'" in wait["what"]
    assert wait["next"] == f"nightherd runs cancel {run}"
    (finding,) = findings(cli)
    assert f"(phase greet of run {run})" in finding["message"]
    assert "has no agent 'greeter'" in finding["message"]

    (state.parent / "nightherd.yaml").write_text(FLEET)
    cli("reload", "--accept")
    cli("worker", "--until-idle")

    assert cli("runs", "show", run, "--json").data["status"] == "succeeded"
    assert findings(cli) == []
