"""A whole fleet on Slack: a real daemon with the real client, by HTTP and by Socket Mode, with buttons and files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from runtimes.keeper.kept_worker import wait_until
from surfaces.drivers import Shell
from warm_command import WarmShell
from web.web_world import free_port

HTTP = """\
webhooks: {{enabled: true, host: 127.0.0.1, port: {port}}}
agents:
  - name: coder
    runtime: scripted
    script: [{{say: "You said: ${{prompt}}"}}]
    chat:
      slack:
        mode: http
        channels: [{{id: {channel}, mode: mention, context_messages: 0}}]
"""
APPROVALS = f"""\
agents:
  - name: coder
    runtime: scripted
    permission_mode: bypassPermissions
    approvals: [{{tool: Bash}}]
    script:
      - tool: Bash
        input: {{command: echo released}}
      - say: It is released.
    chat:
      slack:
        channels: [{{id: {CHANNEL}, mode: all, context_messages: 0}}]
        approvers: {{U0ADA: ada}}
"""
FILES = f"""\
agents:
  - name: coder
    runtime: scripted
    permission_mode: bypassPermissions
    script:
      - tool: Bash
        input: {{command: "tr a-z A-Z < $(find .slack-attachments -type f) > loud.txt"}}
      - tool: mcp__nightherd__send_file
        input: {{path: loud.txt, message: here it is}}
      - say: Sent.
    chat:
      slack:
        channels: [{{id: {CHANNEL}, mode: all, context_messages: 0}}]
        attachments: {{enabled: true}}
"""
PLAIN = f"""\
agents:
  - name: coder
    runtime: scripted
    script:
      - repeat: 20
        steps: [{{say: "You said: ${{prompt}}"}}, {{end: true}}]
    chat:
      slack:
        channels: [{{id: {CHANNEL}, mode: mention, context_messages: 0}}]
        output: {{acknowledge_emoji: "", progress_indicator: false}}
"""


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    """A Slack on the loopback interface."""
    with SlackApi() as server:
        yield server


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The command; its daemon is stopped in the end."""
    made = WarmShell(tmp_path)
    yield made
    made.run("stop", "--now")
    made.close()


def start(shell: Shell, slack: SlackApi, directory: Path, text: str) -> None:
    (directory / "nightherd.yaml").write_text(text)
    started = shell.run("start", "-d", stdin=b"", **slack.environment)
    assert started.code == 0, started.err


def bot_row(shell: Shell) -> dict[str, str]:
    """How the bot does, by `status`."""
    (row,) = shell.run("status", "--json").data["bots"]
    return dict(row)


def connected(shell: Shell) -> bool:
    return bot_row(shell)["status"] == "connected"


def found(slack: SlackApi, words: str, thread: str | None = None) -> Posted | None:
    """What the bot has posted with these words."""
    posted = slack.posted(CHANNEL, thread)
    return next((one for one in posted if words in one.text), None)


def wait(slack: SlackApi, words: str) -> Posted:
    """Wait until the bot has posted these words."""
    assert slack.wait_for(lambda: found(slack, words)), [one.text for one in slack.posted()]
    post = found(slack, words)
    assert post is not None
    return post


def test_a_bot_in_http_mode_answers_and_carries_out_commands(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    port = free_port()
    start(shell, slack, tmp_path, HTTP.format(port=port, channel=CHANNEL))
    slack.deliver_to(f"http://127.0.0.1:{port}/v1/slack/coder")
    slack.redeliver_after(0.2)

    slack.say("good morning", names_bot=True)
    answer = wait(slack, "good morning")
    command = slack.command("ping")
    assert slack.wait_for(lambda: command.is_acknowledged)

    assert "pong" in str(command.answer["text"])
    assert connected(shell)
    assert slack.opened == 0, "no connection of Socket Mode"
    assert "eyes" in {call.arguments["name"] for call in slack.called("reactions.add")}
    assert answer.text.startswith("You said: ")
    assert len([one for one in slack.posted() if "good morning" in one.text]) == 1


def test_a_bot_in_http_mode_without_a_port_says_that_slack_cannot_reach_it(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    text = HTTP.format(port=0, channel=CHANNEL).split("\n", 1)[1]
    start(shell, slack, tmp_path, text)
    shown = slack.wait_for(lambda: bot_row(shell)["status"] == "unavailable")

    assert shown, bot_row(shell)
    assert "opens no port" in bot_row(shell)["error"]
    doctor = shell.run("doctor", stdin=b"", **slack.environment)
    assert "enable 'webhooks'" in doctor.out


def test_an_approval_is_answered_with_a_button_by_those_who_may(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    start(shell, slack, tmp_path, APPROVALS)
    assert slack.wait_for(lambda: slack.connections == 1)
    slack.say("release it")
    assert slack.wait_for(lambda: [one for one in slack.posted() if one.buttons])
    (asked,) = [one for one in slack.posted() if one.buttons]

    slack.press(asked.id, "Approve", user="U0EVE")
    assert slack.wait_for(lambda: slack.workspace.whispers)
    slack.press(asked.id, "Comment...", "looks good to me")
    assert slack.wait_for(lambda: len(slack.workspace.whispers) == 2)
    slack.press(asked.id, "Approve")
    wait(slack, "It is released.")

    (eve, not_named), (ada, commented) = slack.workspace.whispers
    assert (eve, ada) == ("U0EVE", "U0ADA")
    assert "approvers" in not_named
    assert "recorded" in commented
    assert asked.buttons == ("Approve", "Reject", "Comment...")
    assert "echo released" in asked.text
    assert slack.wait_for(lambda: is_answered(slack, asked.id))
    (item,) = shell.run("inbox", "list", "--decided", "--json").data
    assert (item["verdict"], item["decided_by"], item["decided_via"]) == ("approve", "ada", "slack")


def is_answered(slack: SlackApi, id: str) -> bool:
    """Whether the message says who has answered, and can be answered no more."""
    (post,) = [one for one in slack.posted() if one.id == id]
    return not post.buttons and "ada" in post.text


def test_files_come_in_and_go_out(shell: Shell, slack: SlackApi, tmp_path: Path) -> None:
    start(shell, slack, tmp_path, FILES)
    assert slack.wait_for(lambda: slack.connections == 1)

    slack.say("make it loud", file=b"quiet words\n")

    wait(slack, "Sent.")
    post = wait(slack, "here it is")
    (file,) = [one for one in slack.workspace.files.values() if one.name == "loud.txt"]
    assert post.files == ("loud.txt",)
    assert file.content == b"QUIET WORDS\n"


def test_job_in_a_worktree_of_its_own_gets_the_files_and_its_changes_do_not_have_them(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    for words in ("init -q", "-c user.name=x -c user.email=x@y.org commit -q --allow-empty -m 1"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    text = FILES.replace("$(find .slack-", f"$(find {tmp_path}/.nightherd/chat/")
    own = "  - name: coder\n    working_directory: {root: ., mode: worktree, keep: always}\n"
    start(shell, slack, tmp_path, text.replace("  - name: coder\n", own))
    assert slack.wait_for(lambda: slack.connections == 1)

    slack.say("make it loud", file=b"quiet words\n")
    post = wait(slack, "here it is")
    left = tmp_path / ".nightherd" / "chat" / "attachments"
    wait_until(lambda: not list(left.iterdir()))  # the job has ended then

    assert post.files == ("loud.txt",)
    assert b"QUIET WORDS\n" in [one.content for one in slack.workspace.files.values()]
    assert "loud.txt" in shell.run("jobs", "diff", "@last", "--name-only").out
    assert "notes" not in shell.run("jobs", "diff", "@last", "--name-only").out
    status = ["git", "status", "--porcelain"]
    seen = subprocess.run(status, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "attachments" not in seen


def answers(slack: SlackApi, words: str) -> list[Posted]:
    """What the bot has answered to those words."""
    return [one for one in slack.posted() if words in one.text]


def test_an_answer_is_sent_once_though_slack_limits_loses_and_breaks(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    start(shell, slack, tmp_path, PLAIN)
    assert slack.wait_for(lambda: slack.connections == 1)

    for trouble in (slack.lose_answer, slack.break_down, lambda: limit(slack)):
        trouble()
        word = f"number {len(slack.posted())}"
        slack.say(word, names_bot=True)
        wait(slack, word)
        slack.say(f"after {word}", names_bot=True)
        wait(slack, f"after {word}")

    assert [len(answers(slack, f"\nnumber {n}")) for n in (0, 2, 4)] == [1, 1, 1]
    assert len(slack.posted()) == 6
    first, second = slack.called("chat.postMessage")[-3:-1]
    assert first.arguments["metadata"] == second.arguments["metadata"], "sent again after the pause"


def limit(slack: SlackApi) -> None:
    slack.limit_rate(timedelta(seconds=1))


def test_what_was_said_while_the_daemon_was_away_is_answered(
    shell: Shell, slack: SlackApi, tmp_path: Path
) -> None:
    start(shell, slack, tmp_path, PLAIN)
    assert slack.wait_for(lambda: slack.connections == 1)
    slack.say("before", names_bot=True)
    wait(slack, "before")
    assert shell.run("stop").code == 0

    slack.say("missed", names_bot=True)
    slack.say("not for the bot")
    start(shell, slack, tmp_path, PLAIN)
    wait(slack, "missed")

    assert len(answers(slack, "missed")) == 1
    assert len(slack.posted()) == 2
