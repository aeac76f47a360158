"""The example fleets with chat answer on both platforms: a copy of them, whose agents play a script."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from daemon.bot_herd import until
from nightherd.testing.discord_api import DiscordApi
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from warm_command import WarmShell

EXAMPLE = Path(__file__).parents[1] / "config" / "examples" / "chat" / "agents"
DISCORD_BOTS = ("watcher", "first-officer", "navigator", "developer")
PLAYED = "{runtime: scripted, model: null, script: [{say: 'NAME heard you.'}, {end: true}]}"


def fleet_in(directory: Path, *agents: str) -> None:
    """The agents as the example has them, but for what runs them."""
    shutil.copytree(EXAMPLE, directory / "agents")
    lines = ["version: 1", "agents:"]
    for name in agents:
        played = PLAYED.replace("NAME", name)
        lines += [f"  - path: ./agents/{name}.yaml", f"    overrides: {played}"]
    (directory / "nightherd.yaml").write_text("\n".join(lines) + "\n")


def test_every_example_answers_on_slack_or_on_discord(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    fleet_in(tmp_path / "fleet", "helper", *DISCORD_BOTS)
    with SlackApi() as slack, DiscordApi(tmp_path / "discord", bot_name="watcher") as discord:
        others = {name: discord.add_bot(name, f"{name}-token") for name in DISCORD_BOTS[1:]}
        bots = {"watcher": discord.bot, **others}
        environment = {
            **slack.environment,
            **discord.environment,
            **{variable_of(name): bot.token for name, bot in others.items()},
            "DISCORD_GUILD_ID": discord.guild_id,
            "DISCORD_CHANNEL_ID": discord.channel_id,
            "SLACK_CHANNEL_ID": CHANNEL,
        }
        shell = WarmShell(tmp_path / "fleet")
        try:
            started = shell.run("start", "-d", stdin=b"", **environment)
            assert started.code == 0, started.err
            assert "not active" not in started.err

            def connected() -> int:
                shown = shell.run("status", "--json", stdin=b"", **environment).data["bots"]
                return sum(one["status"] == "connected" for one in shown)

            until(lambda: connected() == 1 + len(bots), "the bots")
            slack.say("are you there?", names_bot=True)
            until(lambda: any("helper heard you." in one.text for one in slack.posted()), "Slack")
            for name, bot in bots.items():
                # The navigator answers whatever names nobody else.
                discord.say("who is there?" if name == "navigator" else f"<@{bot.id}> and you?")
                until(partial(is_said, discord, f"{name} heard you."), name)
        finally:
            shell.run("stop", "--now", stdin=b"", **environment)
            shell.close()
        heard = [text for text in said(discord) if text.endswith(" heard you.")]
        assert sorted(heard) == sorted(f"{name} heard you." for name in bots)


def variable_of(name: str) -> str:
    """The variable that holds the token of one of the examples' bots."""
    return f"{name.upper().replace('-', '_')}_BOT_TOKEN"


def said(discord: DiscordApi) -> list[str]:
    """What everybody has written in the channel."""
    with discord.world.lock:
        return [one["content"] for one in discord.world.messages[discord.channel_id].values()]


def is_said(discord: DiscordApi, text: str) -> bool:
    return text in said(discord)
