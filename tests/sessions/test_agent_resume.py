"""`nightherd agent resume`: going on in the session that an agent used last."""

from __future__ import annotations

from sessions.ranch import Ranch


def test_agent_that_has_no_session_cannot_be_resumed(ranch: Ranch) -> None:
    assert ranch.cli("agent", "resume", "memory").code == 3
    assert ranch.cli("agent", "resume", "nobody").code == 3


def test_agent_resume_goes_on_in_the_session_used_last(ranch: Ranch) -> None:
    one = ranch.run("talker", "--channel", "one")["session_id"]
    ranch.run("talker", "--channel", "two")
    ranch.run("talker", "--channel", "one", "-p", "more")

    assert ranch.cli("agent", "resume", "talker", "-p", "again", "-q").code == 0

    assert ranch.data("jobs", "show", "@last")["session_id"] == one
