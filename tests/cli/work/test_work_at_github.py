"""Commands that ask GitHub: a schedule that is run by hand, jobs without a daemon, and locks among fleets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.state_values import BEGINNING
from surfaces.drivers import Cli

FLEET = """\
fleet: {{name: barn}}
agents:
  - name: mender
    runtime: scripted
    default_prompt: go
    work_source: {{type: github, repo: acme/app, base_url: "{url}", auth: {{token_env: LOOPBACK_TOKEN}}}}
    schedules: {{issues: {{interval: 1h}}}}
    script:
      - say: "Mended #${{inputs.issue_number}}."
"""


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GithubApi]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    with GithubApi() as api:
        (tmp_path / "nightherd.yaml").write_text(FLEET.format(url=api.url))
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


def lock(api: GithubApi, number: int, fleet: str = "stable") -> None:
    """Another fleet has the issue."""
    note = f'{{"lock": "claim-{number}", "fleet": "{fleet}", "since": "{BEGINNING.isoformat()}"}}'
    tag = {"tag": "t", "message": note, "object": "0" * 40, "type": "commit"}
    sha = api.repository.answer("POST", "/repos/acme/app/git/tags", {}, tag).body["sha"]
    api.repository.refs[f"refs/nightherd/issues/{number}"] = sha


def test_issue_is_taken_by_hand_and_settled_by_a_worker(api: GithubApi, cli: Cli) -> None:
    made = cli("schedule", "run", "mender/issues", "--json").data
    assert api.repository.labels(7) == ["agent-working"]
    (row,) = cli("work", "list", "--json").data
    assert (row["job_id"], row["status"]) == (made["id"], "working")
    assert cli("worker", "--until-idle").code == 0

    (text,) = api.repository.texts(7)
    assert "Mended #7." in text
    assert not api.repository.is_open(7)
    assert api.repository.refs == {}
    empty = cli("schedule", "run", "mender/issues")
    assert empty.code == 5
    assert "no issue of acme/app has the label 'ready'" in empty.err
    assert "give an open issue of acme/app the label 'ready'" in empty.err


def test_status_says_what_an_ended_job_waits_for(api: GithubApi, cli: Cli) -> None:
    cli("schedule", "run", "mender/issues")
    api.fail("comments", 502, times=None)
    assert cli("worker", "--until-idle").code == 0

    told = cli("status").out
    assert "acme/app#7 is not settled: GitHub could not read comments" in told
    (row,) = cli("status", "--json").data["unsettled_work"]
    assert (row["issue"], row["status"]) == (7, "settling")


def test_locks_of_all_fleets_are_listed(api: GithubApi, cli: Cli) -> None:
    assert "no fleet has an issue" in cli("work", "locks").err
    cli("schedule", "run", "mender/issues")
    lock(api, 8, "st\x1b[2Jable")
    lines = cli("work", "locks").out.splitlines()
    rows = cli("work", "locks", "--json").data

    assert lines[0].split() == ["ISSUE", "FLEET", "SINCE", "HERE"]
    assert lines[1].split()[1] == "barn"
    assert lines[1].split()[-1] == "working"
    assert "\x1b" not in lines[2]
    assert [(row["number"], row["is_own"]) for row in rows] == [(7, True), (8, False)]


def test_lock_of_a_fleet_that_is_gone_is_removed_after_a_question(api: GithubApi, cli: Cli) -> None:
    api.repository.issues[7]["labels"] = ["agent-working", "bug"]
    lock(api, 7)
    asked = cli("work", "unlock", "#7")
    assert asked.code == 2
    assert "this would remove the lock of fleet stable (since 2026-" in asked.err
    assert "refs/nightherd/issues/7" in api.repository.refs

    removed = cli("work", "unlock", "#7", "--yes")
    assert removed.code == 0
    assert "the lock of fleet stable" in removed.out
    assert "it has the label 'ready' again" in removed.err
    assert api.repository.refs == {}
    assert sorted(api.repository.labels(7)) == ["bug", "ready"]
    again = cli("work", "unlock", "#7", "--yes")
    assert again.code == 3
    assert "has no lock" in again.err


def test_lock_of_this_fleet_is_not_removed(api: GithubApi, cli: Cli) -> None:
    cli("schedule", "run", "mender/issues")
    refused = cli("work", "unlock", "#7", "--yes")

    assert refused.code == 5
    assert "is this fleet's: mender/issues has it (working)" in refused.err
    assert "refs/nightherd/issues/7" in api.repository.refs


@pytest.mark.parametrize("name", ["acme/none#7", "acme/app", "#x", "acme/app#\u0667"])
def test_issue_of_no_source_has_no_lock_here(api: GithubApi, cli: Cli, name: str) -> None:
    assert cli("work", "unlock", name, "--yes").code == 3
    assert api.asked == []


def test_retry_continues_with_the_issue(api: GithubApi, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "nightherd.yaml"
    whole = file.read_text()
    file.write_text(whole.replace("- say:", "- fail: {message: The hammer broke}\n      - say:"))
    made = cli("schedule", "run", "mender/issues", "--json").data
    cli("worker", "--until-idle")
    assert "The issue is ready again." in api.repository.texts(7)[0]
    file.write_text(whole)
    retried = cli("jobs", "retry", made["id"], "--json").data
    assert api.repository.labels(7) == ["agent-working"]
    cli("worker", "--until-idle")

    assert "Mended #7." in api.repository.texts(7)[1]
    assert retried["id"] in api.repository.texts(7)[1]
    assert not api.repository.is_open(7)
