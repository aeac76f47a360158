"""A suspended job holds its session: what every command says, and what a person can do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: planner
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: plan
    session: {mode: persistent}
    schedules:
      nightly: {interval: 1h}
    script:
      - tool: Bash
        input: {command: "echo one >> log"}
      - tool: Bash
        input: {command: "echo two >> log"}
      - say: done
  - name: loner
    runtime: scripted
    default_prompt: go
    script:
      - say: done
"""


@pytest.fixture
def held(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that waits for a person after its first turn; it holds its agent's session."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    suspended = cli("run", "planner", "--limit", "turns=1", "--json")
    assert suspended.code == 6
    return str(suspended.data["job_id"])


@pytest.mark.parametrize(
    "words",
    [
        ("run", "planner", "-p", "more"),
        ("run", "planner", "-p", "more", "-d"),
        ("schedule", "run", "planner/nightly"),
    ],
    ids=" ".join,
)
def test_a_run_is_refused_with_the_choices(held: str, cli: Cli, words: tuple[str, ...]) -> None:
    refused = cli(*words)

    assert refused.code == 5
    assert f"is held by {held}, which is suspended (limit)" in refused.err
    assert f"nightherd jobs resume {held} --raise turns=" in refused.err
    assert f"nightherd jobs cancel {held}" in refused.err
    assert "--branch" in refused.err
    assert [job["id"] for job in cli("jobs", "--json").data] == [held], "nothing was recorded"


def test_a_run_into_the_session_and_a_retry_are_refused_too(held: str, cli: Cli) -> None:
    session = cli("jobs", "show", held, "--json").data["session_id"]

    into = cli("run", "planner", "--resume", session, "-p", "more")

    assert (into.code, held in into.err) == (5, True)


def test_the_choices_work(held: str, cli: Cli, tmp_path: Path) -> None:
    branched = cli("run", "planner", "-p", "more", "--branch", "--json")
    resumed = cli("jobs", "resume", held, "--raise", "turns=9", "--json")
    again = cli("run", "planner", "-p", "again", "--json")

    assert (branched.code, resumed.code, again.code) == (0, 0, 0)
    assert (tmp_path / "log").read_text().split() == ["one", "two", "two"]
    first = cli("jobs", "show", held, "--json").data
    other = cli("jobs", "show", branched.data["job_id"], "--json").data
    third = cli("jobs", "show", again.data["job_id"], "--json").data
    assert other["session_id"] != first["session_id"] == third["session_id"]
    assert (other["trigger_type"], other["forked_from"]) == ("fork", held)
    branch = cli("session", "show", other["session_id"], "--json").data
    assert branch["parent_session_id"] == first["session_id"]


def test_a_cancelled_job_lets_the_next_one_run(held: str, cli: Cli) -> None:
    cli("jobs", "cancel", held)

    assert cli("run", "planner", "-p", "more").code == 0


def test_a_branch_of_a_running_session_begins_after_its_last_complete_turn(
    held: str, cli: Cli
) -> None:
    session = cli("jobs", "show", held, "--json").data["session_id"]

    made = cli("run", "planner", "--resume", session, "--branch", "-p", "more", "-d", "--json")

    branch = cli("session", "show", made.data["session_id"], "--json").data
    assert (branch["parent_session_id"], branch["base_messages"]) == (session, 3)


def test_a_branch_of_a_session_without_a_complete_turn_names_the_job_it_comes_from(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = FLEET.replace("    script:\n", "    script:\n      - fail: {message: no luck}\n", 1)
    (tmp_path / "nightherd.yaml").write_text(failing)
    monkeypatch.chdir(tmp_path)
    failed = cli("run", "planner", "--json")

    made = cli("run", "planner", "-p", "more", "--branch", "-d", "--json")

    branch = cli("session", "show", made.data["session_id"], "--json").data
    assert (made.data["trigger_type"], branch["base_messages"]) == ("fork", 0)
    assert made.data["forked_from"] == failed.data["job_id"]


def test_an_agent_that_shares_no_session_has_nothing_to_branch_from(held: str, cli: Cli) -> None:
    refused = cli("run", "loner", "--branch")

    assert refused.code == 2
    assert "starts a new session for every job" in refused.err


def test_branch_and_fork_exclude_each_other(held: str, cli: Cli) -> None:
    assert cli("run", "planner", "--fork", "@last", "--branch").code == 2
