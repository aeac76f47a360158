"""Daemons and workers killed at random moments with the real clients of Slack and Discord.

Every message takes effect once and is answered once and in order; a call that a person allowed runs once.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.killed_bots import KilledBot, open_door
from nightherd.model.chat.platform import Platform
from nightherd.testing.fork_server import ForkServer
from soak import often

KILLS = often(6, soak=200)
"""On each platform."""
IN_A_ROW = 6
"""Of one fleet, before all that was said is to be answered."""


@pytest.fixture(scope="module")
def platform_server() -> Iterator[ForkServer]:
    """Has everything imported that a daemon with a bot imports on its way."""
    with ForkServer(patience_s=120) as server:
        server.load(
            "built_models", "nightherd.triggers.chat.slack", "nightherd.triggers.chat.discord"
        )
        yield server


@pytest.mark.timeout(often(300, soak=3_600))
@pytest.mark.parametrize("platform", [Platform.SLACK, Platform.DISCORD])
def test_bots_killed_at_random_moments_answer_everything_once(
    platform: Platform, platform_server: ForkServer, quick_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills = messages = twice = late = 0
    learn(platform, platform_server, quick_path, chance)
    while kills < KILLS:
        with open_door(platform, quick_path) as door:
            bot = KilledBot(quick_path / "fleet", door, platform_server, chance)
            for _ in range(min(IN_A_ROW, KILLS - kills)):
                bot.live_and_die()
                kills += 1
            twice += bot.finish()
            late += bot.late
            messages += sum(len(words) for words in bot.said.values())
        shutil.rmtree(bot.folder)
        shutil.rmtree(quick_path / "discord", ignore_errors=True)
    print(f"{kills} kills, {messages} messages, {late} taken late, {twice} of them shown twice")


def learn(platform: Platform, server: ForkServer, folder: Path, chance: random.Random) -> None:
    """Have the server import what the first daemon needed to answer."""
    with open_door(platform, folder) as door:
        bot = KilledBot(folder / "fleet", door, server, chance)
        bot.finish(loaded=str(folder / "loaded"))
        server.load(*json.loads((folder / "loaded").read_text()))
    shutil.rmtree(bot.folder)
    shutil.rmtree(folder / "discord", ignore_errors=True)
