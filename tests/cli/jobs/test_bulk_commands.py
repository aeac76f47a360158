"""`jobs cancel --query` and `jobs retry --query`: what a filter means, shown first and done when it is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli, submit_pending

FLEET = """\
agents:
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{say: trying}, {fail: {message: it broke}}]
  - name: good
    runtime: scripted
    default_prompt: go
    script: [{say: done}]
"""


@pytest.fixture
def failed(cli: Cli, fleet: Path) -> list[str]:
    """Two failed jobs and a completed one, oldest first; only the failed ones are given."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    ids = [cli("run", "broken", "--json").data["job_id"] for _ in range(2)]
    assert cli("run", "good").code == 0
    return ids


def statuses(cli: Cli) -> list[str]:
    return [row["status"] for row in cli("jobs", "--json").data]


def test_a_filter_needs_a_confirmation(cli: Cli, failed: list[str]) -> None:
    asked = cli("jobs", "retry", "--query", "agent:broken,good")

    assert asked.code == 2
    assert "this would retry 2 jobs" in asked.err
    assert "--yes" in asked.err
    assert len(statuses(cli)) == 3


def test_a_dry_run_lists_the_jobs_and_changes_nothing(cli: Cli, failed: list[str]) -> None:
    shown = cli("jobs", "retry", "--query", "", "--dry-run")

    assert shown.code == 0
    assert [line.split()[:3] for line in shown.out.splitlines()] == [
        [job, "broken", "failed"] for job in reversed(failed)
    ]
    assert "2 jobs would be retried" in shown.err
    assert len(statuses(cli)) == 3


def test_failed_jobs_are_retried_and_open_ones_cancelled(cli: Cli, failed: list[str]) -> None:
    retried = cli("jobs", "retry", "--query", "since:1d", "--yes")
    new = [line.split()[1] for line in retried.out.splitlines()]
    shown = [cli("jobs", "show", job, "--json").data["status"] for job in new]
    cancelled = cli("jobs", "cancel", "--query", "agent:broken", "--yes", "--json")
    again = cli("jobs", "cancel", "--query", "agent:broken", "--yes")

    assert (retried.code, "2 jobs retried" in retried.err) == (0, True)
    assert [line.split()[0] for line in retried.out.splitlines()] == failed[::-1]
    assert shown == ["pending", "pending"]
    assert (cancelled.code, cancelled.document["schema"]) == (0, "nightherd/v1/bulk")
    assert {row["job_id"] for row in cancelled.data["jobs"]} == set(new)
    assert {row["job"]["status"] for row in cancelled.data["jobs"]} == {"cancelled"}
    assert (cancelled.data["done"], cancelled.data["refused"]) == (2, 0)
    assert (again.code, again.out, "0 jobs cancelled" in again.err) == (0, "", True)


def test_what_is_refused_for_one_job_is_said_with_exit_code_5(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET)
    job = cli("run", "broken", "--json").data["job_id"]
    (fleet / "nightherd.yaml").write_text(FLEET.replace("name: broken", "name: other"))

    refused = cli("jobs", "retry", "--query", "status:failed", "--yes")
    dry = cli("jobs", "retry", "--query", "status:failed", "--dry-run")

    for answer in (refused, dry):
        assert answer.code == 5
        assert f"refused {job}: the fleet has no agent 'broken'" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cancel"], "give a JOB, or a filter with --query"),
        (["retry", "@last", "--query", "x"], "give a JOB, or a filter with --query"),
        (["cancel", "@last", "--yes"], "--dry-run and --yes are for --query"),
        (["cancel", "--query", "", "--yes", "--dry-run"], "cannot be used together"),
        (["cancel", "--query", "agent:x state:y", "--yes"], "column 9 of the filter"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, fleet: Path, words: list[str], said: str) -> None:
    job = submit_pending(fleet)

    refused = cli("jobs", *words)

    assert (refused.code, said in refused.err) == (2, True), refused.err
    assert cli("jobs", "show", job, "--json").data["status"] == "pending"
