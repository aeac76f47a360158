"""The daemon runs the bots of its fleet: with a real Slack client against a loopback Slack."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nightherd.daemon.record import find_daemon
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import APP_TOKEN, BOT_TOKEN, CHANNEL
from surfaces.drivers import Shell

PATIENCE_S = 60.0
BOT = "slack/coder"

HEAD = """\
agents:
  - name: coder
    runtime: scripted
    script:
      - repeat: 20
        steps: [{say: "You said: ${prompt}", over: PACE}, {end: true}]
"""
CHAT = f"""\
    chat:
      slack:
        channels: [{{id: {CHANNEL}, mode: all, context_messages: 0}}]
        output: {{acknowledge_emoji: ""}}
"""


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    """A Slack on the loopback interface."""
    with SlackApi() as server:
        yield server


class Herd:
    """A fleet whose daemon is started with the variables of a Slack."""

    def __init__(self, directory: Path, slack: SlackApi) -> None:
        self.directory = directory
        self.slack = slack
        self.environment: Mapping[str, str] = dict(slack.environment)
        self.shell = Shell(directory)
        self.write(HEAD + CHAT)

    def write(self, text: str, pace: str = "0s") -> None:
        """Change the fleet file."""
        (self.directory / "nightherd.yaml").write_text(text.replace("PACE", pace))

    def start(self) -> int:
        """Start the daemon; its process."""
        started = self.shell.run("start", "-d", stdin=b"", **self.environment)
        assert started.code == 0, started.err
        record = find_daemon(self.directory / ".nightherd")
        assert record is not None
        return record.pid

    def bot(self) -> Mapping[str, Any]:
        """How the bot does, by `status`."""
        (row,) = self.shell.run("status", "--json").data["bots"]
        assert isinstance(row, dict)
        return row

    def wait_for_status(self, status: str) -> Mapping[str, Any]:
        """Wait until the bot stands so."""
        row: Mapping[str, Any] = until(
            lambda: row if (row := self.bot())["status"] == status else None, status
        )
        return row

    def posted(self) -> Sequence[str]:
        """What the bot has said."""
        return [one.text for one in self.slack.posted()]

    def answers(self, said: str) -> int:
        """How many answers repeat what was said."""
        return sum(said in text for text in self.posted())

    def output(self) -> str:
        """What the daemon has written."""
        return (self.directory / ".nightherd" / "logs" / "daemon.out").read_text()

    def close(self) -> None:
        """Stop the daemon."""
        self.shell.run("stop", "--now")
        self.shell.close()


@pytest.fixture
def herd(tmp_path: Path, slack: SlackApi) -> Iterator[Herd]:
    """A fleet with one bot; its daemon does not run yet."""
    made = Herd(tmp_path, slack)
    yield made
    made.close()


def until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"it never came: {what}")


def test_bot_answers_and_status_shows_it(herd: Herd) -> None:
    herd.start()
    row = herd.wait_for_status("connected")
    assert (row["bot"], row["error"], row["waiting_messages"]) == (BOT, None, 0)

    herd.slack.say("hello")

    until(lambda: herd.answers("hello"), "the answer")
    (job,) = herd.shell.run("jobs", "--json").data
    assert (job["trigger_type"], job["agent"]) == ("slack", "coder")


def test_stopped_daemon_sends_what_its_last_job_said(herd: Herd) -> None:
    herd.write(HEAD + CHAT, pace="2s")
    herd.start()
    herd.wait_for_status("connected")
    herd.slack.say("hello")
    until(lambda: herd.shell.run("jobs", "--status", "running", "--json").data, "the turn")

    assert herd.shell.run("stop").code == 0

    assert (len(herd.posted()), herd.answers("hello")) == (1, 1)
    assert herd.bot()["status"] == "stopped"


def test_killed_daemon_answers_once_after_its_next_start(herd: Herd) -> None:
    herd.write(HEAD + CHAT, pace="2s")
    pid = herd.start()
    herd.wait_for_status("connected")
    herd.slack.say("hello")
    until(lambda: herd.shell.run("jobs", "--status", "running", "--json").data, "the turn")
    os.kill(pid, signal.SIGKILL)
    until(lambda: find_daemon(herd.directory / ".nightherd") is None, "the end of the daemon")
    herd.slack.say("and while you were away")

    herd.start()

    until(lambda: herd.answers("while you were away"), "the second answer")
    assert (herd.answers("hello"), herd.answers("while you were away")) == (1, 1)


def test_bot_without_a_token_is_one_line_at_each_start(herd: Herd) -> None:
    herd.environment = {**herd.environment, "SLACK_BOT_TOKEN": ""}
    for starts in (1, 2):
        herd.start()
        row = herd.wait_for_status("unavailable")
        assert row["error"] == "SLACK_BOT_TOKEN is not set"
        lines = re.findall(r"slack/coder is unavailable: .*", herd.output())
        assert lines == ["slack/coder is unavailable: SLACK_BOT_TOKEN is not set"] * starts
        assert herd.shell.run("stop").code == 0
    assert herd.bot()["status"] == "unavailable"


def test_revoked_token_is_clear_and_asked_no_more(herd: Herd) -> None:
    herd.slack.revoke()
    herd.start()

    row = herd.wait_for_status("refused")

    assert "token_revoked" in row["error"] or "invalid_auth" in row["error"]
    assert BOT_TOKEN not in herd.output() + row["error"]
    calls = len(herd.slack.called("auth.test")) + len(herd.slack.called("apps.connections.open"))
    time.sleep(1.5)  # a loop would ask again and again
    after = len(herd.slack.called("auth.test")) + len(herd.slack.called("apps.connections.open"))
    assert after == calls
    assert len(re.findall("slack/coder is refused", herd.output())) == 1


def test_reload_starts_replaces_and_stops_bots(herd: Herd) -> None:
    herd.write(HEAD)
    herd.start()
    assert herd.shell.run("status", "--json").data["bots"] == []

    herd.write(HEAD + CHAT)
    assert herd.shell.run("reload", "--accept").code == 0
    herd.wait_for_status("connected")
    opened = herd.slack.opened

    herd.write(HEAD + CHAT.replace("mode: all", "mode: mention"))
    herd.shell.run("reload", "--accept")
    until(lambda: herd.slack.opened > opened, "another connection")
    herd.slack.say("not for you")
    herd.slack.say("hello", names_bot=True)
    until(herd.posted, "the answer")
    assert len(herd.posted()) == 1
    assert "hello" in herd.posted()[0]

    herd.write(HEAD)
    herd.shell.run("reload", "--accept")
    until(lambda: herd.slack.connections == 0, "the end of the connection")


def test_agents_get_no_token_of_a_bot(herd: Herd) -> None:
    script = "      - {tool: Bash, input: {command: env}}\n      - say: Done.\n"
    text = HEAD.partition("      - repeat")[0] + "    allowed_tools: [Bash]\n" + CHAT
    herd.write(text.replace("    script:\n", "") + "    script:\n" + script)
    herd.start()
    herd.wait_for_status("connected")
    herd.slack.say("show yourself")
    until(lambda: "Done." in herd.posted(), "the answer")

    (job,) = herd.shell.run("jobs", "--json").data
    shown = herd.shell.run("jobs", "tail", job["id"], "--full").out

    assert "PATH=" in shown
    assert "SLACK_BOT_TOKEN" not in shown
    assert APP_TOKEN not in shown + "".join(herd.posted())
