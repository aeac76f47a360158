"""`nightherd chat` in a terminal: text as it comes, commands, keys, and daemons that are killed in the middle."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cli.chat.chat_terminal import FLEET, PATIENCE_S, PROMPT, ChatTerminal, chat_terminal
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Shell

WHOLE = "One two three four five six seven eight nine ten."


@contextmanager
def answer_without_daemon(shell: Shell) -> Iterator[tuple[ChatTerminal, DaemonRecord]]:
    """A terminal in the middle of an answer, and the daemon, which was killed just now."""
    assert shell.run("start", "-d").code == 0
    daemon = daemon_of(shell.directory)
    with chat_terminal(shell.directory, "slow") as terminal:
        terminal.wait_for_prompt()
        terminal.send("count")
        terminal.wait_for("One two")
        os.kill(daemon.pid, signal.SIGKILL)
        yield terminal, daemon


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The command in a directory with agents to talk with."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    started = Shell(tmp_path)
    yield started
    started.run("stop", "--now")
    started.close()


def jobs(directory: Path) -> list[Job]:
    with closing(open_reader(directory / ".nightherd")) as reader:
        return list(reader.list_jobs(JobQuery()))


def daemon_of(directory: Path) -> DaemonRecord:
    """The daemon, once it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        record = find_daemon(directory / ".nightherd")
        if record is not None:
            return record
        time.sleep(0.02)
    raise AssertionError("no daemon started")


def test_person_talks_asks_commands_and_leaves(shell: Shell) -> None:
    with chat_terminal(shell.directory, "echo") as terminal:
        terminal.wait_for_prompt()
        terminal.send("hello")
        assert "You said: hello\n" in terminal.wait_for_prompt()
        terminal.send("/session")
        assert "sess-" in terminal.wait_for_prompt()
        terminal.send("/nonsense")
        assert "There is no command" in terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0

    session = jobs(shell.directory)[0].session_id
    assert f"continue: nightherd chat echo --session {session}" in terminal.screen
    assert terminal.screen.count("You said: hello") == 1


def test_lines_are_remembered_without_secrets(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2-hunter2")
    with chat_terminal(shell.directory, "echo") as terminal:
        terminal.wait_for_prompt()
        terminal.send("the key is hunter2-hunter2-hunter2")
        terminal.wait_for_prompt()
        terminal.type("\x04")
        terminal.wait_for_end()
    with chat_terminal(shell.directory, "echo") as terminal:
        terminal.wait_for_prompt()
        terminal.type("\x1b[A\n")  # the line before
        assert "You said: the key is [secret:MY_API_KEY]" in terminal.wait_for_prompt()

    history = shell.directory / ".nightherd" / "chat" / "terminals" / "history"
    assert "hunter2" not in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_text_is_shown_as_it_comes_and_ctrl_c_cancels_the_turn(shell: Shell) -> None:
    with chat_terminal(shell.directory, "slow") as terminal:
        terminal.wait_for_prompt()
        terminal.send("count")
        terminal.wait_for("One two")
        assert jobs(shell.directory)[0].status is JobStatus.RUNNING
        terminal.type("\x03")
        terminal.wait_for("stopping")
        assert "Cancelled." in terminal.wait_for_prompt()
        assert jobs(shell.directory)[0].status is JobStatus.CANCELLED
        assert "ten." not in terminal.screen

        terminal.type("\x03")
        terminal.wait_for("press Ctrl-C again")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0


def test_approval_is_shown_and_given(shell: Shell) -> None:
    with chat_terminal(shell.directory, "pusher") as terminal:
        terminal.wait_for_prompt()
        terminal.send("go")
        asked = terminal.wait_for_prompt()
        assert "echo pushed" in asked
        assert re.search(r"/1 Approve\s+/2 ", asked)
        terminal.send("/1")
        assert "Pushed." in terminal.wait_for_prompt()

    assert (shell.directory / "pushed.txt").read_text() == "pushed\n"


def test_answer_survives_a_killed_daemon_that_is_started_again(shell: Shell) -> None:
    with answer_without_daemon(shell) as (terminal, first):
        assert shell.run("start", "-d").code == 0
        shown = terminal.wait_for_prompt()

    assert WHOLE in shown.replace("\n", " ") or WHOLE in terminal.screen
    (job,) = jobs(shell.directory)
    assert (job.status, daemon_of(shell.directory).pid == first.pid) == (JobStatus.COMPLETED, False)


def test_turn_of_a_daemon_that_is_gone_for_good_is_continued_here(shell: Shell) -> None:
    with answer_without_daemon(shell) as (terminal, _):
        terminal.wait_for_prompt()
        terminal.send("/ping")
        assert "pong" in terminal.wait_for_prompt()

    (job,) = jobs(shell.directory)
    assert job.status is JobStatus.COMPLETED
    assert WHOLE in terminal.screen


def test_killed_terminal_loses_nothing(shell: Shell) -> None:
    assert shell.run("start", "-d").code == 0
    with chat_terminal(shell.directory, "slow") as terminal:
        terminal.wait_for_prompt()
        terminal.send("count")
        terminal.wait_for("One two")
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.wait_for_end()
    (job,) = jobs(shell.directory)
    assert job.session_id is not None

    with chat_terminal(shell.directory, "slow", "--session", job.session_id) as again:
        again.wait_for(WHOLE)
        again.wait_for(PROMPT)
        again.send("/ping")
        assert "pong" in again.wait_for_prompt()

    assert [one.id for one in jobs(shell.directory)] == [job.id]


def test_closed_terminal_gives_its_turn_back(shell: Shell) -> None:
    """Without a daemon the turn runs here; it waits for the next worker, with what it has done."""
    with chat_terminal(shell.directory, "slow") as terminal:
        terminal.wait_for_prompt()
        terminal.send("count")
        terminal.wait_for("One two")
        os.kill(terminal.process.pid, signal.SIGHUP)
        terminal.wait_for_end()

    (job,) = jobs(shell.directory)
    assert job.status is JobStatus.PENDING
    assert shell.run("worker", "--until-idle").code == 0
    (job,) = jobs(shell.directory)
    assert job.status is JobStatus.COMPLETED
