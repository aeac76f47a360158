"""discord.py against a loopback Discord keeps the contract of connections to chat platforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.model.chat.platform import ChatPlace
from nightherd.testing.contracts.chat import CHAT_CHECKS, Check, OpenChat
from nightherd.testing.discord_api import DiscordApi
from nightherd.testing.recording_receiver import RecordingReceiver
from nightherd.triggers.chat.discord import open_discord
from triggers.chat.discord_bot import bot_settings

each_check = pytest.mark.parametrize("check", CHAT_CHECKS, ids=lambda check: check.__name__)


@each_check
async def test_discord_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with DiscordApi(tmp_path / "discord") as discord:
        await check(
            OpenChat(
                connection=open_discord(bot_settings(), discord.environment),
                platform=discord,
                place=ChatPlace(channel_id=discord.channel_id),
                user_id=discord.user_id,
                user_name=discord.user_name,
                secrets=(discord.bot.token, "signed"),
                directory=tmp_path,
                receiver=RecordingReceiver(),
            )
        )
