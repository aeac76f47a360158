"""What commands say to go on with: the step that fits what was asked, and nothing that would do other work."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: shepherd
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: count the sheep
    schedules:
      hourly: {interval: 1h}
    script:
      - tool: Bash
        input: {command: "true"}
      - say: counted
"""


@pytest.fixture
def herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet that nothing has run yet; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("run shepard", "nightherd run shepherd"),
        ("run x", "nightherd agent list"),
        ("agent show shepard", "nightherd agent list"),
        ("agent reset x", "nightherd agent list"),
        ("limits show x", "nightherd agent list"),
        ("jobs job-2026-11-15-aaaaaa", "nightherd jobs show job-2026-11-15-aaaaaa"),
        ("jobs @last", "nightherd jobs show @last"),
        ("session sess-aaaaaaaa", "nightherd session show sess-aaaaaaaa"),
        ("schedule shepherd/hourly", "nightherd schedule why shepherd/hourly"),
        ("checkpoint @last", "nightherd checkpoint show @last"),
        ("jobs x", "nightherd jobs --help"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_a_step_that_does_no_other_work(
    herd: Path, cli: Cli, command: str, step: str
) -> None:
    answer = cli(*command.split())

    assert answer.code in (2, 3)
    assert answer.err.endswith(f"  try: {step}\n")


def test_a_job_of_a_schedule_that_nobody_runs_says_so(herd: Path, cli: Cli) -> None:
    answer = cli("schedule", "run", "shepherd/hourly")

    assert answer.err == "no worker is running; run it now: nightherd worker --until-idle\n"


def test_a_fleet_that_was_only_declared_has_nothing_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("init")

    examined, told = cli("doctor"), cli("logs")

    assert (examined.code, "does not exist yet; no problems" in examined.out) == (0, True)
    assert (told.code, told.err) == (0, "nothing has been logged yet\n")


def test_a_job_that_waits_shows_its_limits_beside_it_and_is_found_from_status(
    herd: Path, cli: Cli
) -> None:
    suspended = cli("run", "shepherd", "--limit", "turns=1")
    card = cli("jobs", "show", "@last").out

    assert suspended.code == 6
    assert "limit     turns: 1 of 1, 0 left\n" in card.split("\nprompt\n")[0] + "\n"
    status = cli("status")
    assert "see them: nightherd jobs list --status suspended\n" in status.err
    assert "1 job suspended" in status.out


def test_a_job_that_has_not_begun_is_not_branched_from(herd: Path, cli: Cli) -> None:
    job_id = cli("run", "shepherd", "-d", "--json").data["job_id"]

    refused = cli("jobs", "fork", job_id)

    assert refused.code == 5
    assert f"job {job_id} has not started; there is nothing to fork" in refused.err
