"""Where chat happens: the platforms, what a message may hold there, and places on them."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec

BotId = NewType("BotId", str)
"""One agent on one platform, `slack/coder`: what has a token, a connection and an outbox of its own."""


class Platform(StrEnum):
    """Where people talk to an agent."""

    SLACK = "slack"
    DISCORD = "discord"
    TERMINAL = "terminal"


class PlatformLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one message may hold."""

    characters: int
    """Of one message; a longer answer is split."""
    longest_code: int
    """Characters of a code block; a longer one is sent as a file."""
    most_parts: int
    """Messages of one answer; a longer answer is sent as a file."""
    buttons: int
    """Buttons in one message."""
    file_bytes: int = 10_000_000
    """Of one file that is sent."""


LIMITS = {
    # Slack truncates at 40,000 and shows "see more" long before; 4,000 is what it recommends.
    Platform.SLACK: PlatformLimits(
        characters=3_900, longest_code=3_000, most_parts=6, buttons=5, file_bytes=50_000_000
    ),
    # Discord takes no more from a bot where the server has no boosts.
    Platform.DISCORD: PlatformLimits(
        characters=2_000, longest_code=1_500, most_parts=8, buttons=5, file_bytes=10_000_000
    ),
    Platform.TERMINAL: PlatformLimits(
        characters=1_000_000,
        longest_code=1_000_000,
        most_parts=1,
        buttons=9,
        file_bytes=50_000_000,
    ),
}


class ChatPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is said: a channel, a thread of it, or a direct conversation with one person."""

    channel_id: str
    thread_id: str | None = None
    """On Slack the `ts` of the thread's first message. On Discord None: a thread there is a channel of its own."""


def bot_id(platform: Platform, agent: str) -> BotId:
    """Return the name of an agent's bot on a platform."""
    return BotId(f"{platform}/{agent}")
