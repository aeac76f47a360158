"""A bot on a loopback Discord, connected while a context lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import msgspec
from anyio import to_thread

from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import BotSettings
from nightherd.ports.chat import ChatPost
from nightherd.testing.discord_api import TOKEN_VARIABLE, DiscordApi
from nightherd.testing.recording_receiver import RecordingReceiver
from nightherd.triggers.chat.discord import DiscordConnection
from nightherd.triggers.chat.discord_session import Timing

QUICK = Timing(identify_s=0.01, record_pauses_s=(0.01, 0.01))
"""So that no test waits for what Discord wants to be waited for."""
LONG = timedelta(hours=1)


def bot_settings(**more: Any) -> BotSettings:
    """Settings of a bot that logs in with the loopback server's token."""
    return BotSettings(
        bot=bot_id(Platform.DISCORD, "coder"),
        platform=Platform.DISCORD,
        agent="coder",
        token_env=TOKEN_VARIABLE,
        **more,
    )


class Bot(msgspec.Struct, kw_only=True):
    """A connection, and what it handed on."""

    connection: DiscordConnection
    receiver: RecordingReceiver
    place: ChatPlace

    def post(self, text: str, nonce: str = "nonce-1", **more: Any) -> ChatPost:
        """A message to the channel."""
        return ChatPost(**{"place": self.place, "text": text, "nonce": nonce, **more})

    async def message(self) -> Any:
        """The first message that was handed on."""
        await self.receiver.until(lambda: len(self.receiver.messages) >= 1)
        return self.receiver.messages[0]

    @property
    def fresh(self) -> int:
        """How often messages may have been missed."""
        return sum(state.is_fresh for state in self.receiver.states)

    @property
    def connects(self) -> int:
        """How often it was connected."""
        return sum(state.is_connected for state in self.receiver.states)


def make_bot(
    discord: DiscordApi,
    settings: BotSettings | None = None,
    receiver: RecordingReceiver | None = None,
    timing: Timing = QUICK,
) -> Bot:
    """A bot that is not running yet."""
    connection = DiscordConnection(
        settings or bot_settings(), discord.environment, timing=timing, first_pause_s=0.01
    )
    return Bot(
        connection=connection,
        receiver=receiver or RecordingReceiver(),
        place=ChatPlace(channel_id=discord.channel_id),
    )


@asynccontextmanager
async def running(
    discord: DiscordApi,
    settings: BotSettings | None = None,
    receiver: RecordingReceiver | None = None,
    timing: Timing = QUICK,
) -> AsyncIterator[Bot]:
    """A bot that is connected while the context lasts."""
    bot = make_bot(discord, settings, receiver, timing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.connection.run, bot.receiver)
        await bot.receiver.until(lambda: bot.receiver.is_connected)
        yield bot
        tasks.cancel_scope.cancel()


async def eventually(discord: DiscordApi, is_so: Callable[[], bool]) -> None:
    """Wait until something is so on Discord."""
    assert await to_thread.run_sync(discord.wait_until, is_so)
