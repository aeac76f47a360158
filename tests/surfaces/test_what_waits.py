"""What waits for a person, and what a person refused, as `status`, `run --json` and `jobs show` say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: pusher
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    approvals:
      - tool: "Bash(git push:*)"
    script:
      - tool: Bash
        input: {command: git push}
      - say: Done.
  - name: breaker
    runtime: scripted
    default_prompt: go
    script:
      - fail: {message: the service is down}
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("fleet")
def test_status_counts_what_waits_and_says_since_when(cli: Cli) -> None:
    assert cli("status", "--json").data["inbox"]["waiting"] == 0
    assert "inbox:" not in cli("status").out
    cli("run", "pusher")
    cli("run", "pusher")
    cli("run", "breaker")

    counted = cli("status", "--json").data["inbox"]
    shown = cli("status").out

    *_, oldest = cli("inbox", "--json").data
    assert counted["waiting"] == 3
    assert counted["kinds"] == {
        "approval": 2, "question": 0, "limit": 0, "failure": 1, "reload": 0,
    }  # fmt: skip
    assert (counted["oldest"], counted["oldest_at"]) == (oldest["id"], oldest["created_at"])
    assert counted["oldest_age_seconds"] >= 0
    assert "inbox: 2 approvals, 1 failure; the oldest has waited " in shown
    assert "; answer: nightherd inbox" in shown


def test_a_rejected_call_is_in_the_result_and_with_the_job(fleet: Path, cli: Cli) -> None:
    waiting = cli("run", "pusher", "--json").data
    assert (waiting["suspend_reason"], waiting["denials"]) == ("approval", [])
    job = waiting["job_id"]
    assert cli("inbox", "reject", job, "-m", "not tonight").code == 0
    assert cli("worker", "--until-idle").code == 0

    shown = cli("jobs", "show", job, "--json").data
    (line,) = [one for one in cli("jobs", "show", job).out.splitlines() if "denied" in one]

    assert shown["status"] == "completed"
    (denied,) = shown["denials"]
    assert denied["tool_name"] == "Bash"
    assert "not tonight" in denied["reason"]
    assert "Bash: rejected by " in line
    assert all("denials" not in row for row in cli("jobs", "--json").data)
