"""`nightherd agent resume`: going on in the session that an agent used last."""

from __future__ import annotations

import pytest

from cli.sessions.ranch import Ranch


def test_agent_that_has_no_session_cannot_be_resumed(ranch: Ranch) -> None:
    assert ranch.cli("agent", "resume", "memory").code == 3
    assert ranch.cli("agent", "resume", "nobody").code == 3


def test_agent_resume_goes_on_in_the_session_used_last(ranch: Ranch) -> None:
    one = ranch.run("talker", "--channel", "one")["session_id"]
    ranch.run("talker", "--channel", "two")
    ranch.run("talker", "--channel", "one", "-p", "more")

    assert ranch.cli("agent", "resume", "talker", "-p", "again", "-q").code == 0

    assert ranch.data("jobs", "show", "@last")["session_id"] == one


@pytest.mark.parametrize("command", ["session", "agent"])
def test_resume_after_a_completed_job_needs_a_prompt(ranch: Ranch, command: str) -> None:
    first = ranch.run("memory")
    named = first["session_id"] if command == "session" else "memory"

    refused = ranch.cli(command, "resume", named, "-q")

    assert refused.code == 5
    assert f"its last job {first['job_id']} is completed" in refused.err
    assert f"nightherd session resume {first['session_id']} -p TEXT" in refused.err
    assert [one["id"] for one in ranch.data("jobs")] == [first["job_id"]]

    on = ranch.cli(command, "resume", named, "-p", "more", "-q")

    assert on.code == 0
    assert f"job {first['job_id']} is completed: this is a new job in its session" in on.err
    assert ranch.data("jobs", "show", "@last")["resumed_from"] == first["job_id"]
