"""Every command line and every diagram that describes sessions to users, one test each."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli.sessions.ranch import Ranch
from surfaces.drivers import Shell

LINES = [
    'agent resume <agent-name> --prompt "Continue from where you left off."',
    'jobs resume <job-id> --prompt "Continue from where you left off. Focus on the failing test."',
    "session fork <session-id>",
    'session fork <session-id> --run --prompt "Try a different approach"',
    "session fork <session-id> --at-message 5",
    "session list",
    "session list --agent memory",
    "session list --status active",
    "session show <session-id>",
    "session show <session-id> --history",
    "session cleanup",
    "session cleanup --older-than 7d",
    "session export <session-id>",
]


@pytest.fixture
def prepared(ranch: Ranch) -> dict[str, str]:
    """A session of two jobs and more than five messages, and how the lines call it."""
    ranch.run("memory", "-p", "first")
    done = ranch.run("memory", "-p", "second")
    assert ranch.show(done["session_id"])["message_count"] == 5
    return {
        "<job-id>": done["job_id"],
        "<session-id>": done["session_id"],
        "<agent-name>": "memory",
    }


@pytest.mark.parametrize("is_json", [False, True], ids=["people", "programs"])
@pytest.mark.parametrize("line", LINES)
def test_line_works(ranch: Ranch, prepared: dict[str, str], line: str, is_json: bool) -> None:
    words = [prepared.get(word, word) for word in shlex.split(line)]

    result = ranch.cli(*words, *(["--json"] if is_json else []))

    assert result.code == 0, result
    if is_json:
        assert result.document["schema"].startswith("nightherd/v1/")


def test_completed_job_is_resumed_only_with_a_prompt(
    ranch: Ranch, prepared: dict[str, str]
) -> None:
    """Without one nothing says what the new job, which costs money, is for."""
    result = ranch.cli("jobs", "resume", prepared["<job-id>"])

    assert result.code == 5
    assert f"try: nightherd jobs resume {prepared['<job-id>']} -p TEXT" in result.err


def test_export_goes_into_a_file_by_the_shell(
    ranch: Ranch, prepared: dict[str, str], tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    line = ["session", "export", prepared["<session-id>"]]

    done = shell.run(*line)

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["data"]["session"]["id"] == prepared["<session-id>"]


def test_fresh_sessions_know_nothing_of_each_other(ranch: Ranch) -> None:
    jobs = [ranch.run("fresh", "-p", f"job {number}") for number in (1, 2, 3)]

    sessions = [job["session_id"] for job in jobs]
    assert len(set(sessions)) == 3
    for number, session in enumerate(sessions, 1):
        shown = ranch.show(session)
        assert shown["status"] == "completed"
        assert [text for text in ranch.texts(session) if text.startswith("job")] == [
            f"job {number}"
        ]


def test_a_persistent_session_goes_on_with_all_before(ranch: Ranch) -> None:
    jobs = [ranch.run("memory", "-p", f"job {number}") for number in (1, 2, 3)]

    (session,) = {job["session_id"] for job in jobs}
    assert [text for text in ranch.texts(session) if text.startswith("job")] == [
        "job 1",
        "job 2",
        "job 3",
    ]
    shown = ranch.show(session)
    assert shown["jobs"] == [job["job_id"] for job in jobs]
    assert shown["status"] == "paused"


def test_each_channel_has_its_own_session(ranch: Ranch) -> None:
    channels = ("discord-general", "discord-support", "slack-dev")

    first = {channel: ranch.run("talker", "--channel", channel) for channel in channels}
    again = {channel: ranch.run("talker", "--channel", channel) for channel in channels}

    ids = {channel: done["session_id"] for channel, done in first.items()}
    assert len(set(ids.values())) == 3
    assert {channel: done["session_id"] for channel, done in again.items()} == ids


def test_one_schedule_of_an_agent_may_begin_anew_where_others_share(ranch: Ranch) -> None:
    shared = ranch.run("memory")["session_id"]

    fresh = ranch.run("memory", "--session", "fresh_per_job")["session_id"]

    assert fresh != shared
    assert ranch.show(fresh)["mode"] == "fresh_per_job"
    assert ranch.run("memory")["session_id"] == shared


def test_resumed_job_has_the_full_history(ranch: Ranch, prepared: dict[str, str]) -> None:
    before = ranch.texts(prepared["<session-id>"])

    assert ranch.cli("jobs", "resume", prepared["<job-id>"], "-p", "third", "-q").code == 0

    assert ranch.texts(prepared["<session-id>"])[: len(before) + 1] == [*before, "third"]


def test_fork_leaves_the_original_as_it_was(ranch: Ranch, prepared: dict[str, str]) -> None:
    original = prepared["<session-id>"]
    before, shown = ranch.texts(original), ranch.show(original)

    ranch.cli("session", "fork", original, "--at-message", "3", "--run", "-p", "M4'", "-q")

    assert ranch.texts()[:4] == [*before[:3], "M4'"]
    assert ranch.texts(original) == before
    assert {**ranch.show(original), "forks": []} == {**shown, "forks": []}


def test_session_is_stored_as_the_diagram_shows(ranch: Ranch, prepared: dict[str, str]) -> None:
    session = prepared["<session-id>"]

    document = json.loads((ranch.state / "sessions" / f"{session}.json").read_text())

    shown = ranch.show(session)
    assert document == {
        "id": session,
        "agentId": "memory",
        "mode": "persistent",
        "status": "paused",
        "createdAt": shown["created_at"],
        "lastActiveAt": shown["last_active_at"],
        "messageCount": 5,
        "tokenEstimate": shown["token_estimate"],
        "jobs": shown["jobs"],
    }
    context = (ranch.state / "sessions" / f"{session}.context").read_text()
    roles = [json.loads(line)["role"] for line in context.splitlines()]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
