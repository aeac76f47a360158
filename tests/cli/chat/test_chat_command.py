"""`nightherd chat` with lines from a pipe: an answer for each, as text and as documents; and what it refuses."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.chat.chat_terminal import FLEET
from nightherd.model.chat.conversation import ConversationQuery
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Cli, Shell


@pytest.fixture
def herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with agents to talk with; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_line_is_answered_in_one_session(cli: Cli, herd: Path) -> None:
    done = cli("chat", "echo", stdin=b"one\n\ntwo\n")

    assert (done.code, done.out) == (0, "You said: one\nYou said: two\n")
    jobs = cli("jobs", "list", "--json").data
    assert {job["trigger_type"] for job in jobs} == {"chat"}
    assert [job["session_id"] for job in jobs] == [jobs[0]["session_id"]] * 2


def test_answers_are_documents(cli: Cli, herd: Path) -> None:
    first, second = cli("chat", "echo", "--json", stdin=b"one\n/ping\n").documents

    assert (first["schema"], first["data"]["status"]) == ("nightherd/v1/chat", "answered")
    assert first["data"]["answer"] == "You said: one"
    assert first["data"]["job_id"].startswith("job-")
    assert (second["data"]["status"], second["data"]["answer"]) == ("command", "pong")
    assert second["data"]["session_id"] == first["data"]["session_id"]
    assert second["data"]["job_id"] is None


def test_session_of_a_conversation_goes_on(cli: Cli, herd: Path) -> None:
    (first,) = cli("chat", "echo", "--json", stdin=b"one\n").documents
    session = first["data"]["session_id"]

    (second,) = cli("chat", "echo", "--session", session, "--json", stdin=b"two\n").documents
    (third,) = cli("chat", "echo", "--json", stdin=b"three\n").documents

    assert second["data"]["session_id"] == session
    assert third["data"]["session_id"] != session
    with closing(open_reader(herd / ".nightherd")) as reader:
        assert len(reader.list_conversations(ConversationQuery())) == 2
        assert not reader.list_chat_bots(), "nothing of a terminal is left that nobody looks at"


def test_session_of_a_job_can_be_talked_with(cli: Cli, herd: Path) -> None:
    text = FLEET.replace("- name: echo\n", "- name: echo\n    session: {mode: persistent}\n")
    (herd / "nightherd.yaml").write_text(text)
    assert cli("run", "echo", "-p", "one").code == 0
    (session,) = cli("session", "list", "--json").data

    (said,) = cli("chat", "echo", "--session", session["id"], "--json", stdin=b"two\n").documents

    assert said["data"]["session_id"] == session["id"]
    assert said["data"]["answer"] == "You said: two"


def test_turn_that_fails_is_an_exit_code(cli: Cli, herd: Path) -> None:
    failed = cli("chat", "failing", stdin=b"go\n")

    assert (failed.code, failed.out) == (1, "")
    assert "No luck today." in failed.err
    (said,) = cli("chat", "failing", "--json", stdin=b"go\n").documents
    assert said["data"]["status"] == "failed"
    assert "No luck today." in said["data"]["error"]


def test_turn_that_waits_for_a_person_does_not_hold_up_the_next_line(cli: Cli, herd: Path) -> None:
    done = cli("chat", "pusher", "--json", stdin=b"go\n/status\n")

    first, second = done.documents
    assert done.code == 1
    assert first["data"]["status"] == "waiting"
    assert "waits for a person" in second["data"]["answer"]
    assert not (herd / "pushed.txt").exists()


def test_approval_is_given_by_its_number(cli: Cli, herd: Path) -> None:
    done = cli("chat", "pusher", "--json", stdin=b"go\n/1\n")

    first, second = done.documents
    assert done.code == 0
    assert (first["data"]["status"], second["data"]["status"]) == ("waiting", "answered")
    assert second["data"]["answer"] == "Pushed."
    assert (herd / "pushed.txt").read_text() == "pushed\n"


def test_file_of_the_agent_is_named(cli: Cli, herd: Path) -> None:
    (said,) = cli("chat", "sender", "--json", stdin=b"count\n").documents

    (file,) = said["data"]["files"]
    assert (said["data"]["answer"], file["name"]) == ("Sent.", "count.txt")
    assert Path(file["path"]).read_text() == "12 cows"


def test_what_cannot_be_talked_with_is_refused(cli: Cli, herd: Path) -> None:
    (said,) = cli("chat", "echo", "--json", stdin=b"one\n").documents
    session = said["data"]["session_id"]

    unknown = cli("chat", "ecko", stdin=b"one\n")
    no_session = cli("chat", "echo", "--session", "sess-nothing", stdin=b"one\n")
    other = cli("chat", "slow", "--session", session, stdin=b"one\n")

    assert "no agent 'ecko'" in unknown.err
    assert "nightherd chat echo" in unknown.err
    assert "sess-nothing" in no_session.err
    assert f"session {session} is one of agent 'echo', not of 'slow'" in other.err
    assert 0 not in (unknown.code, no_session.code, other.code)


def test_agents_cannot_approve_in_a_chat(cli: Cli, herd: Path) -> None:
    """An agent that starts `nightherd chat` may talk, and not answer what waits for a person."""
    text = (
        FLEET
        + """\
  - name: sly
    runtime: scripted
    permission_mode: bypassPermissions
    script:
      - tool: Bash
        input: {command: "printf 'go\\\\n/1\\\\n' | PYTHON -m nightherd chat pusher 2> said.txt"}
      - say: Tried.
"""
    )
    (herd / "nightherd.yaml").write_text(text.replace("PYTHON", sys.executable))

    assert cli("run", "sly", "-p", "go").code == 0

    assert "an agent started this process" in (herd / "said.txt").read_text()
    assert not (herd / "pushed.txt").exists()


def test_two_terminals_cannot_have_one_conversation(herd: Path) -> None:
    shell = Shell(herd)
    try:
        (said,) = shell.run("chat", "echo", "--json", stdin=b"one\n").documents
        session = said["data"]["session_id"]
        first = shell.start("chat", "echo", "--session", session, stdin=-1, stdout=-1, stderr=-1)
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(b"two\n")
        first.stdin.flush()
        assert first.stdout.readline() == b"You said: two\n"

        second = shell.run("chat", "echo", "--session", session, stdin=b"three\n")

        assert second.code != 0
        assert f"another terminal (process {first.pid})" in second.err
        first.stdin.close()
        assert first.wait() == 0
    finally:
        shell.close()
