"""The daemon runs the bots of its fleet: with a real Slack client against a loopback Slack."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from daemon.bot_herd import BotHerd, until
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import APP_TOKEN, BOT_TOKEN, CHANNEL

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


ASKING = f"""\
      - {{tool: Bash, input: {{command: echo released}}}}
      - say: Released.
    approvals: [{{tool: Bash}}]
    permission_mode: bypassPermissions
    chat:
      slack:
        channels: [{{id: {CHANNEL}, mode: all, context_messages: 0}}]
        approvers: {{U0ADA: ada}}
"""


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    """A Slack on the loopback interface."""
    with SlackApi() as server:
        yield server


class Herd(BotHerd):
    """The fleet of a bot on Slack."""

    def __init__(self, directory: Path, slack: SlackApi) -> None:
        super().__init__(directory, dict(slack.environment))
        self.slack = slack
        self.write(HEAD + CHAT)

    def posted(self) -> Sequence[str]:
        """What the bot has said."""
        return [one.text for one in self.slack.posted()]

    def answers(self, said: str) -> int:
        """How many answers repeat what was said."""
        return sum(said in text for text in self.posted())


@pytest.fixture
def herd(tmp_path: Path, slack: SlackApi) -> Iterator[Herd]:
    """A fleet with one bot; its daemon does not run yet."""
    made = Herd(tmp_path, slack)
    yield made
    made.close()


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
    herd.wait_for_turn()

    assert herd.shell.run("stop").code == 0

    assert (len(herd.posted()), herd.answers("hello")) == (1, 1)
    assert herd.bot()["status"] == "stopped"


def test_stopped_daemon_shows_that_an_item_was_answered(herd: Herd) -> None:
    herd.write(HEAD.partition("      - repeat")[0] + ASKING)
    pid = herd.start()
    herd.wait_for_status("connected")
    herd.slack.say("release it")
    asked = until(lambda: [one for one in herd.slack.posted() if one.buttons], "the question")
    herd.slack.press(asked[0].id, "Approve")
    until(herd.is_answered, "the answer of the inbox")

    os.kill(pid, signal.SIGTERM)
    until(herd.is_down, "the end of the daemon")

    (post,) = [one for one in herd.slack.posted() if one.id == asked[0].id]
    assert (post.buttons, "Approved by ada" in post.text) == ((), True)


def test_killed_daemon_answers_once_after_its_next_start(herd: Herd) -> None:
    herd.write(HEAD + CHAT, pace="2s")
    pid = herd.start()
    herd.wait_for_status("connected")
    herd.slack.say("hello")
    herd.wait_for_turn()
    herd.kill(pid)
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
