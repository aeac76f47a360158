"""`run` in a chosen session, `jobs resume` and `jobs fork`, and how long somebody waits for a job."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from surfaces.drivers import Cli, Shell

AGENTS = """\
agents:
  - name: diary
    runtime: scripted
    session: {mode: persistent}
    script:
      - say: "Noted: ${prompt}"
  - name: other
    runtime: scripted
    script:
      - say: "Other: ${prompt}"
  - name: brief
    runtime: scripted
    session: {timeout: 2h}
    script:
      - say: "Brief: ${prompt}"
  - name: desk
    runtime: scripted
    session: {mode: per_channel}
    script:
      - say: "At ${prompt}"
  - name: slow
    runtime: scripted
    default_prompt: go
    script:
      - say: begun
      - sleep: 1h
  - name: tired
    runtime: scripted
    default_prompt: go
    script:
      - fail: {code: rate_limited, message: Too much, recoverable: true, retry_after: 1h}
"""


@pytest.fixture
def herd(fleet: Path) -> Path:
    (fleet / "nightherd.yaml").write_text(AGENTS)
    return fleet


def run(cli: Cli, *words: str) -> dict[str, Any]:
    done = cli(*words, "--json")
    assert done.code == 0, done.err
    data: dict[str, Any] = done.data
    return data


def job(cli: Cli, reference: str = "@last") -> dict[str, Any]:
    return run(cli, "jobs", "show", reference)


def test_run_goes_on_in_the_session_it_is_given(cli: Cli, herd: Path) -> None:
    first = run(cli, "run", "other", "-p", "one")

    again = run(cli, "run", "other", "-p", "two", "--resume", first["session_id"])

    shown = job(cli, again["job_id"])
    assert shown["resumed_from"] == first["job_id"]
    # One job's own session is over with it: what goes on is a branch of its end.
    assert again["session_id"] != first["session_id"]


def test_run_resumes_by_a_prefix_and_by_the_runtimes_own_id(cli: Cli, herd: Path) -> None:
    first = run(cli, "run", "diary", "-p", "one")

    by_prefix = run(cli, "run", "diary", "-p", "two", "--resume", first["session_id"][:9])
    by_runtime = run(cli, "run", "diary", "-p", "three", "--resume", first["runtime_session_id"])

    assert {by_prefix["session_id"], by_runtime["session_id"]} == {first["session_id"]}


def test_run_forks_the_session_it_is_given(cli: Cli, herd: Path) -> None:
    first = run(cli, "run", "diary", "-p", "one")

    fork = run(cli, "run", "diary", "-p", "two", "--fork", first["session_id"])

    shown = job(cli, fork["job_id"])
    assert (shown["trigger_type"], shown["forked_from"]) == ("fork", first["job_id"])
    assert fork["session_id"] != first["session_id"]


def test_mode_and_channel_say_which_session_is_shared(cli: Cli, herd: Path) -> None:
    shared = [run(cli, "run", "other", "-p", "x", "--session", "persistent") for _ in range(2)]
    alone = run(cli, "run", "diary", "-p", "x", "--session", "fresh_per_job")
    diary = run(cli, "run", "diary", "-p", "x")
    desks = [run(cli, "run", "desk", "-p", "x", "--channel", name) for name in ("a", "b", "a")]

    assert shared[0]["session_id"] == shared[1]["session_id"]
    assert alone["session_id"] != diary["session_id"]
    assert desks[0]["session_id"] == desks[2]["session_id"] != desks[1]["session_id"]


def test_another_mode_keeps_what_the_agent_says_besides(cli: Cli, herd: Path) -> None:
    session = run(cli, "run", "brief", "-p", "x", "--session", "persistent")["session_id"]

    shown = run(cli, "session", "show", session)

    begun, ends = (datetime.fromisoformat(shown[at]) for at in ("last_active_at", "expires_at"))
    assert ends - begun == timedelta(hours=2)


def test_wait_shows_the_end_alone(cli: Cli, herd: Path) -> None:
    done = cli("run", "other", "-p", "x", "--wait")

    assert (done.code, done.out) == (0, "")
    assert "completed" in done.err


def test_nobody_waits_longer_than_told_and_the_job_is_left_to_a_worker(
    shell: Shell, cli: Cli, herd: Path
) -> None:
    done = shell.run("run", "slow", "--wait-timeout", "200ms", "--json")

    assert done.code == 8
    shown = job(cli)
    assert (shown["status"], shown["restart_count"]) == ("pending", 0)
    assert run(cli, "jobs", "cancel", "@last")["status"] == "cancelled"


def test_job_timeout_of_the_command_bounds_the_job(shell: Shell, cli: Cli, herd: Path) -> None:
    done = shell.run("run", "slow", "--job-timeout", "200ms")

    assert done.code == 124
    assert job(cli)["exit_reason"] == "timeout"


def test_job_that_waits_for_a_time_is_suspended_and_resuming_is_the_same_job(
    cli: Cli, herd: Path
) -> None:
    first = cli("run", "tired", "--json")
    again = cli("jobs", "resume", "@last", "--json")

    assert (first.code, again.code) == (8, 8)
    assert (first.data["status"], first.data["suspend_reason"]) == ("suspended", "rate_limit")
    assert again.data["job_id"] == first.data["job_id"]
    assert first.data["resumes_at"] is not None
    assert first.data["error_details"]["recoverable"] is True


def test_people_are_told_when_a_job_that_waits_goes_on_and_how_it_goes_on_sooner(
    cli: Cli, herd: Path
) -> None:
    told = cli("run", "tired")
    shown = cli("jobs", "show", "@last")
    listed = cli("jobs")
    waits = job(cli)

    at = datetime.fromisoformat(waits["resumes_at"]).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"it resumes by itself at {at}" in told.err
    assert f"resumes   {at}, by itself" in shown.out
    assert f"rate_limit, resumes {at}" in listed.out
    assert f"sooner: nightherd jobs resume {waits['id']}" in told.err
    assert "jobs retry" not in told.err + shown.out


def test_job_that_was_cancelled_while_it_waited_goes_on_at_no_time(cli: Cli, herd: Path) -> None:
    cli("run", "tired")

    cancelled = run(cli, "jobs", "cancel", "@last")

    assert (cancelled["status"], cancelled["resumes_at"]) == ("cancelled", None)


def test_resumed_job_that_had_ended_is_a_new_one(cli: Cli, herd: Path) -> None:
    first = run(cli, "run", "diary", "-p", "one")

    again = run(cli, "jobs", "resume", "@last", "-p", "two")

    assert again["session_id"] == first["session_id"]
    assert job(cli, again["job_id"])["resumed_from"] == first["job_id"]


def test_fork_at_a_message_and_left_to_a_worker(cli: Cli, herd: Path) -> None:
    first = run(cli, "run", "diary", "-p", "one")

    launched = run(cli, "jobs", "fork", "@last", "--at-message", "1", "-p", "two", "-d")

    assert launched["status"] == "pending"
    assert job(cli, launched["job_id"])["forked_from"] == first["job_id"]


@pytest.mark.parametrize(
    ("code", "words", "says"),
    [
        (2, ("run", "diary", "-p", "x", "--resume", "a", "--fork", "b"), "both choose a session"),
        (
            2,
            ("run", "diary", "-p", "x", "--resume", "a", "--channel", "b"),
            "both choose a session",
        ),
        (2, ("run", "diary", "-p", "x", "--wait", "--detach"), "cannot be used together"),
        (2, ("run", "diary", "-p", "x", "--detach", "--wait-timeout", "1s"), "--wait-timeout"),
        (2, ("run", "diary", "-p", "x", "--wait-timeout", "soon"), "not a duration"),
        (2, ("run", "diary", "-p", "x", "--job-timeout", "0s"), "must be greater than 0"),
        (2, ("run", "desk", "-p", "x"), "no channel was given"),
        (3, ("run", "diary", "-p", "x", "--resume", "sess-nowhere1"), "no session sess-nowhere1"),
        (3, ("run", "diary", "-p", "x", "--fork", "sess-nowhere1"), "no session sess-nowhere1"),
        (3, ("jobs", "resume", "job-1999-01-01-aaaaaa"), "no job job-1999-01-01-aaaaaa"),
        (3, ("jobs", "fork", "job-1999-01-01-aaaaaa"), "no job job-1999-01-01-aaaaaa"),
        (2, ("jobs", "fork", "@last", "--at-message", "99"), "there is no message 99"),
        (
            2,
            ("jobs", "fork", "@last", "--at-message", "1", "--at-seq", "1"),
            "cannot be used together",
        ),
        (5, ("run", "other", "-p", "x", "--resume", "@diary"), "belongs to agent 'diary'"),
    ],
)
def test_what_makes_no_sense_is_told_and_changes_nothing(
    code: int, words: tuple[str, ...], says: str, cli: Cli, herd: Path
) -> None:
    first = run(cli, "run", "diary", "-p", "one")
    named = [first["session_id"] if word == "@diary" else word for word in words]

    done = cli(*named)

    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert len(cli("jobs", "--json").data) == 1


@pytest.mark.parametrize(
    "prompt", ["--version", "-x", "/clear", "@/etc/passwd", "$(id)", "line\nline", "🐄" * 2000]
)
def test_prompt_is_taken_as_it_is(prompt: str, cli: Cli, herd: Path) -> None:
    done = cli("run", "other", f"--prompt={prompt}", "--json")

    assert (done.code, done.data["summary"]) == (0, f"Other: {prompt}")
