"""The daemon runs bots on Discord: with the real discord.py against a loopback Discord."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from daemon.bot_herd import PATIENCE_S, BotHerd, until
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.discord_api import TOKEN_VARIABLE, DiscordApi
from nightherd.testing.discord_world import BotAccount
from warm_command import WarmShell

FLEET = """\
agents:
  - name: coder
    runtime: scripted
    permission_mode: bypassPermissions
    approvals: [{tool: Bash}]
    script:
      - repeat: 20
        steps: [{say: "You said: ${prompt}", over: PACE}, {end: true}]
    chat:
      discord:
        guilds:
          - id: "GUILD"
            default_channel_mode: all
        approvers: {"USER": ada}
        output: {acknowledge_emoji: ""}
"""
ASKING = "      - {tool: Bash, input: {command: echo released}}\n      - {say: Released.}\n"


class Herd(BotHerd):
    """The fleet of a bot on Discord."""

    def __init__(self, directory: Path, discord: DiscordApi) -> None:
        super().__init__(directory, discord.environment)
        self.discord = discord
        self.write(FLEET)

    def write(self, text: str, pace: str = "0s") -> None:
        """Write the fleet file, with the ids of the loopback Discord."""
        for name, id in (("GUILD", self.discord.guild_id), ("USER", self.discord.user_id)):
            text = text.replace(name, id)
        super().write(text, pace)

    def wait_for(self, text: str, channel: str | None = None) -> None:
        """Wait until the bot has said it."""

        def is_said() -> bool:
            return any(text in one for one in self.posted(channel))

        assert self.discord.wait_until(is_said, PATIENCE_S), self.posted(channel)

    def asking(self) -> Sequence[Posted]:
        """The posts with buttons."""
        return [one for one in self.discord.posted() if one.buttons]

    def posted(self, channel: str | None = None) -> Sequence[str]:
        """What the bot has said."""
        return [one.text for one in self.discord.posted(channel)]

    def count(self, text: str) -> int:
        """How many answers have that text."""
        return sum(text in one for one in self.posted())


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    """A fleet with one bot; its daemon does not run yet."""
    (tmp_path / "fleet").mkdir()
    with DiscordApi(tmp_path / "discord") as discord:
        made = Herd(tmp_path / "fleet", discord)
        yield made
        made.close()


def test_bot_answers_in_channels_threads_and_direct_messages(herd: Herd) -> None:
    herd.start()
    herd.wait_for_status("connected")
    thread, direct = herd.discord.add_thread("release"), herd.discord.direct_channel()

    for channel in (None, thread, direct):
        herd.discord.say("good morning", channel=channel)
        herd.wait_for("You said: ", channel)
        assert any("good morning" in one for one in herd.posted(channel))

    jobs = herd.shell.run("jobs", "--json").data
    assert {one["trigger_type"] for one in jobs} == {"discord"}


def test_slash_commands_are_answered_by_the_daemon(herd: Herd) -> None:
    herd.start()
    herd.wait_for_status("connected")
    assert herd.discord.wait_until(lambda: bool(herd.discord.bot.commands))

    herd.discord.command("ping")

    assert herd.discord.wait_until(lambda: bool(herd.discord.answers()[0].said))
    assert herd.discord.answers()[0].said == ["pong"]


def test_approval_is_commented_and_given_with_buttons(herd: Herd) -> None:
    script = FLEET.partition("      - repeat")[0] + ASKING + FLEET.partition("{end: true}]\n")[2]
    herd.write(script)
    herd.start()
    herd.wait_for_status("connected")
    herd.discord.say("release it")
    assert herd.discord.wait_until(lambda: bool(herd.asking()), PATIENCE_S)
    (post,) = herd.asking()

    herd.discord.press(post.id, "Comment...", "looks good")
    herd.wait_for("> **ada:** looks good")
    herd.discord.press(post.id, "Approve")

    herd.wait_for("Released.")
    assert herd.discord.wait_until(lambda: not herd.asking(), PATIENCE_S), "the buttons go"


def test_what_was_said_in_a_server_while_the_daemon_was_away_is_answered(herd: Herd) -> None:
    herd.start()
    herd.wait_for_status("connected")
    assert herd.shell.run("stop").code == 0
    herd.discord.say("is anybody there?")

    herd.start()

    herd.wait_for("is anybody there?")


def test_killed_daemon_answers_once_after_its_next_start(herd: Herd) -> None:
    herd.write(FLEET, pace="2s")
    pid = herd.start()
    herd.wait_for_status("connected")
    herd.discord.say("hello")
    herd.wait_for_turn()
    herd.kill(pid)
    herd.discord.say("and while you were away")

    herd.start()

    herd.wait_for("while you were away")
    assert (herd.count("hello"), herd.count("while you were away")) == (1, 1)


def test_answer_whose_arrival_was_not_heard_of_is_not_sent_again(herd: Herd) -> None:
    pid = herd.start()
    herd.wait_for_status("connected")
    herd.discord.lose_answer()
    herd.discord.say("hello")
    herd.wait_for("hello")
    herd.kill(pid)

    herd.start()
    herd.wait_for_status("connected")
    herd.discord.say("and now?")

    herd.wait_for("and now?")
    assert (herd.count("hello"), herd.count("and now?")) == (1, 1)


def test_revoked_token_is_clear_and_asked_no_more(herd: Herd) -> None:
    herd.discord.revoke()
    herd.start()

    row = herd.wait_for_status("refused")

    assert row["error"] == "Discord refuses the bot's token"
    assert herd.discord.bot.token not in herd.output()
    time.sleep(1.5)  # a loop would ask again and again
    assert len(herd.discord.rest.lines) == 1


def test_bots_of_herdctls_example_share_a_channel(tmp_path: Path, repository: Path) -> None:
    """Two agents as herdctl's users write them, with scripts in place of a model."""
    shutil.copytree(repository / "tests/config/examples/chat", tmp_path / "fleet")
    for name in ("first-officer", "navigator"):
        file = tmp_path / "fleet" / "agents" / f"{name}.yaml"
        script = f"runtime: scripted\nscript: [{{say: Here is the {name}.}}]\n"
        file.write_text(file.read_text().replace("model: claude-haiku-4-20250514\n", script))
    (tmp_path / "fleet" / "herdctl.yaml").rename(tmp_path / "fleet" / "nightherd.yaml")
    shell = WarmShell(tmp_path / "fleet")
    with DiscordApi(tmp_path / "discord", bot_name="first-officer") as discord:
        officer = discord.bot
        navigator = discord.add_bot("navigator", "loopback.discord.token-of-navigator")
        environment = {
            **discord.environment,
            TOKEN_VARIABLE: "",
            "FIRST_OFFICER_BOT_TOKEN": officer.token,
            "NAVIGATOR_BOT_TOKEN": navigator.token,
            "DISCORD_GUILD_ID": discord.guild_id,
            "DISCORD_CHANNEL_ID": discord.channel_id,
            "SLACK_CHANNEL_ID": "C0123456789",
        }

        def said(bot: BotAccount) -> int:
            messages = discord.world.messages[discord.channel_id].values()
            return sum(one["author"] is bot.user for one in messages)

        def are_connected() -> bool:
            rows = shell.run("status", "--json", stdin=b"", **environment).data["bots"]
            return [row["status"] for row in rows].count("connected") == 2

        try:
            started = shell.run("start", "-d", stdin=b"", **environment)
            assert started.code == 0, started.err
            until(are_connected, "both connections")
            discord.say("where are we?")
            assert discord.wait_until(lambda: said(navigator) == 1)
            discord.say("and what do you say?", names_bot=True)
            assert discord.wait_until(lambda: said(officer) == 1)
            discord.say("thank you")
            assert discord.wait_until(lambda: said(navigator) == 2)
        finally:
            shell.run("stop", stdin=b"", **environment)
            shell.close()

    assert (said(officer), said(navigator)) == (1, 2)
