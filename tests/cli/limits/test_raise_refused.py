"""`jobs resume` refuses what would not help, or would cost unasked, and says what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
{fleet}agents:
  - name: spender
    runtime: scripted
    default_prompt: go
    limits: {limits}
    script:
      - say: one
      - usage: {{input_tokens: 10, output_tokens: 2, cost_usd: 0.30}}
      - say: two
      - usage: {{input_tokens: 10, output_tokens: 2, cost_usd: 0.30}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suspended(folder: Path, cli: Cli, *, fleet: str = "", limits: str = "{}") -> str:
    (folder / "nightherd.yaml").write_text(FLEET.format(fleet=fleet, limits=limits))
    ended = cli("run", "spender", "--json")
    assert ended.code == 6, ended.err
    return str(ended.data["job_id"])


def test_a_raise_to_less_than_the_limit_is_refused(folder: Path, cli: Cli) -> None:
    job = suspended(folder, cli, limits="{spend: 0.50}")

    refused = cli("jobs", "resume", job, "--raise", "spend=0.45")

    assert refused.code == 5
    assert "$0.45 is less than its limit of $0.50" in refused.err
    assert cli("jobs", "resume", job, "--raise", "spend=2").code == 0


def test_a_raise_does_not_help_against_a_budget_of_the_fleet(folder: Path, cli: Cli) -> None:
    job = suspended(folder, cli, fleet="limits: {spend: 0.50}\n")

    refused = cli("jobs", "resume", job, "--raise", "spend=2")

    assert refused.code == 5
    assert "not stopped by a limit of its own" in refused.err
    assert "nightherd limits show spender" in refused.err
    assert cli("jobs", "show", job, "--json").data["status"] == "suspended"


def test_a_completed_job_is_resumed_only_with_something_to_do(folder: Path, cli: Cli) -> None:
    (folder / "nightherd.yaml").write_text(FLEET.format(fleet="", limits="{}"))
    job = cli("run", "spender", "--json").data["job_id"]

    refused = cli("jobs", "resume", job)
    also = cli("jobs", "resume", job, "-d")
    asked = cli("jobs", "resume", job, "-p", "and now?")

    assert (refused.code, also.code, asked.code) == (5, 5, 0)
    assert f"nightherd jobs resume {job} -p TEXT" in refused.err
    assert asked.err.startswith(f"job {job} is completed: this is a new job in its session\n")
    assert len(cli("jobs", "--json").data) == 2
