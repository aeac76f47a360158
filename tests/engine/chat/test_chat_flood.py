"""Many people in many channels at once: each conversation keeps its order, and nothing is left in memory."""

from __future__ import annotations

import random
import re
import resource
from pathlib import Path

import anyio

from engine.chat.bot_bench import live_bot
from engine.chat.chat_bench import BOT, settings_of
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import ChannelMode, ChannelSettings
from soak import often

CHANNELS, PEOPLE = 20, 50
MESSAGES = often(300, soak=2_000)
PATIENCE_S = often(60, soak=600)
MOST_MEMORY = 150_000_000
"""Bytes that the process may take more for it: the platform in memory keeps everything that is said."""


def peak() -> int:
    """The most memory that the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_flood_is_answered_in_order_in_each_channel(tmp_path: Path) -> None:
    places = [ChatPlace(channel_id=f"C{number}") for number in range(CHANNELS)]
    channels = tuple(ChannelSettings(id=one.channel_id, mode=ChannelMode.ALL) for one in places)
    dice = random.Random(19)

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings_of(channels=channels)) as live:
            before = peak()
            said: dict[ChatPlace, list[str]] = {place: [] for place in places}
            for number in range(MESSAGES):
                place = dice.choice(places)
                said[place].append(f"<{number}>")
                user = f"U{dice.randrange(PEOPLE)}"
                live.platform.say(f"<{number}>", place=place, user=user)
                if not number % 20:
                    await anyio.sleep(0.01)
            reader = live.context.reader

            def recorded() -> int:
                ids = [conversation_id(BOT, place) for place in places]
                return sum(len(reader.list_chat_messages(id, MESSAGES)) for id in ids)

            with anyio.fail_after(PATIENCE_S):
                while not (live.is_quiet() and recorded() == MESSAGES):  # noqa: ASYNC110 (nothing says when)
                    await anyio.sleep(0.05)
            for place, texts in said.items():
                prompts = []
                for turn in live.turns(place):
                    asked = reader.find_texts(turn.job_id)
                    assert asked is not None
                    prompts.append(asked.prompt)
                assert re.findall(r"<\d+>", " ".join(prompts)) == texts
                answers = [text for text in live.texts(place) if text.startswith("turn ")]
                assert re.findall(r"&lt;(\d+)&gt;", " ".join(answers)) == [
                    text.strip("<>") for text in texts
                ]
            assert peak() - before < MOST_MEMORY

    anyio.run(main)
