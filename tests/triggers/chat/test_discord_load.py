"""Many people in many channels of Discord at once: order holds in each, and nothing is lost or doubled."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path

from nightherd.testing.discord_api import DiscordApi
from triggers.chat.discord_bot import eventually, running

MESSAGES, PEOPLE, CHANNELS = 2_000, 50, 20
EACH = 500
"""Messages after which the connection is cut; a tenth of that is said before it is resumed."""


def has_resumed(discord: DiscordApi, cuts: int) -> bool:
    return discord.bot.resumed >= cuts


async def test_two_thousand_messages_keep_their_order_through_cuts(tmp_path: Path) -> None:
    with DiscordApi(tmp_path) as discord:
        people = [discord.add_user(f"Person{n}") for n in range(PEOPLE)]
        channels = [discord.add_channel(f"channel-{n}") for n in range(CHANNELS)]
        said: dict[str, list[str]] = defaultdict(list)
        async with running(discord) as bot:
            for n in range(MESSAGES):
                channel = channels[n % CHANNELS]
                id = discord.say(f"number {n}", channel=channel, user=people[n % PEOPLE])
                said[channel].append(id)
                if n % EACH == EACH // 2:
                    discord.drop()
                if n % EACH == EACH // 2 + EACH // 10:
                    cuts = n // EACH + 1
                    await eventually(discord, partial(has_resumed, discord, cuts))
            await bot.receiver.until(lambda: len(bot.receiver.messages) >= MESSAGES)

        heard: dict[str, list[str]] = defaultdict(list)
        for message in bot.receiver.messages:
            heard[message.place.channel_id].append(message.message_id)

    assert heard == said
    assert discord.bot.resumed == MESSAGES // EACH
    assert bot.fresh == 1
