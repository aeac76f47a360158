"""A bot on a loopback Discord."""

from __future__ import annotations

from typing import Any

from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.settings import BotSettings
from nightherd.testing.discord_api import TOKEN_VARIABLE


def bot_settings(**more: Any) -> BotSettings:
    """Settings of a bot that logs in with the loopback server's token."""
    return BotSettings(
        bot=bot_id(Platform.DISCORD, "coder"),
        platform=Platform.DISCORD,
        agent="coder",
        token_env=TOKEN_VARIABLE,
        **more,
    )
