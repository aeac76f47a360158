"""Without a daemon, a command brings the readable files up to date before it exits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: bounded
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    schedules:
      nightly: {type: interval, interval: 1h}
    script:
      - repeat: 2
        steps: [{say: on}, {usage: {input_tokens: 1, output_tokens: 1}}]
  - name: failing
    runtime: scripted
    default_prompt: go
    script: [{fail: {message: "no"}}]
"""


@pytest.fixture
def root(fleet: Path) -> Path:
    """The state directory of a fleet in which one job is suspended and one has failed."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet / ".nightherd"


def state(root: Path, agent: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / "state.yaml").read_text())["agents"][agent]
    return found


def job(root: Path) -> dict[str, Any]:
    (path,) = (root / "jobs").glob("*.yaml")
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_cancelling_a_suspended_job(root: Path, cli: Cli) -> None:
    cli("run", "bounded", "--quiet")
    assert job(root)["status"] == "running", "what waits has not ended"

    assert cli("jobs", "cancel", job(root)["id"]).code == 0

    assert job(root)["status"] == "cancelled"


def test_overriding_a_schedule(root: Path, cli: Cli) -> None:
    cli("run", "bounded", "--quiet")

    def status_after(*command: str) -> Any:
        assert cli("schedule", *command).code == 0
        return state(root, "bounded")["schedules"]["nightly"]["status"]

    assert status_after("disable", "bounded/nightly") == "disabled"
    assert status_after("enable", "bounded/nightly") == "idle"
    assert status_after("disable", "bounded/nightly") == "disabled"
    assert status_after("reset", "bounded/nightly") == "idle"
    before = state(root, "bounded")["schedules"]["nightly"]["next_run_at"]
    status_after("set", "bounded/nightly", "30 3 * * *")
    assert state(root, "bounded")["schedules"]["nightly"]["next_run_at"] != before


def test_resetting_an_agent(root: Path, cli: Cli) -> None:
    cli("run", "failing", "--quiet")
    assert state(root, "failing")["status"] == "error"

    assert cli("agent", "reset", "failing").code == 0

    assert state(root, "failing")["status"] == "idle"
