"""The example fleets with chat answer on both platforms: a copy of them, whose agents play a script."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from nightherd.testing.discord_api import TOKEN_VARIABLE, DiscordApi
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from surfaces.drivers import Shell

EXAMPLE = Path(__file__).parents[1] / "config" / "examples" / "chat" / "agents"
PATIENCE_S = 90.0
PLAYED = "{runtime: scripted, model: null, script: [{say: 'NAME heard you.'}, {end: true}]}"


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"it never came: {what}"
        time.sleep(0.05)


def fleet_in(directory: Path, *agents: str) -> None:
    """The agents as the example has them, but for what runs them."""
    shutil.copytree(EXAMPLE, directory / "agents")
    lines = ["version: 1", "agents:"]
    for name in agents:
        played = PLAYED.replace("NAME", name)
        lines += [f"  - path: ./agents/{name}.yaml", f"    overrides: {played}"]
    (directory / "nightherd.yaml").write_text("\n".join(lines) + "\n")


def test_examples_answer_on_slack_and_on_discord(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    fleet_in(tmp_path / "fleet", "helper", "navigator")
    with SlackApi() as slack, DiscordApi(tmp_path / "discord") as discord:
        channel = discord.channel_id
        environment = {
            **slack.environment,
            **discord.environment,
            "NAVIGATOR_BOT_TOKEN": discord.environment[TOKEN_VARIABLE],
            "DISCORD_GUILD_ID": discord.guild_id,
            "DISCORD_CHANNEL_ID": channel,
            "SLACK_CHANNEL_ID": CHANNEL,
        }
        shell = Shell(tmp_path / "fleet")
        try:
            started = shell.run("start", "-d", stdin=b"", **environment)
            assert started.code == 0, started.err
            assert "not active" not in started.err

            def connected() -> int:
                bots = shell.run("status", "--json", stdin=b"", **environment).data["bots"]
                return sum(one["status"] == "connected" for one in bots)

            until(lambda: connected() == 2, "the bots")
            slack.say("are you there?", names_bot=True)
            until(lambda: any("helper heard you." in one.text for one in slack.posted()), "Slack")
            discord.say("are you there?")
            until(
                lambda: any("navigator heard you." in one.text for one in discord.posted()),
                "Discord",
            )
        finally:
            shell.run("stop", "--now", stdin=b"", **environment)
            shell.close()
