"""What every connection to a chat platform must do: one check per promise, for any `ChatConnection` and its platform."""

from __future__ import annotations

from nightherd.testing.contracts.chat_events import CHAT_EVENT_CHECKS
from nightherd.testing.contracts.chat_sending import CHAT_SENDING_CHECKS
from nightherd.testing.contracts.open_chat import (
    ChatPlatform,
    Check,
    OpenChat,
    Posted,
    running,
)

__all__ = ["CHAT_CHECKS", "ChatPlatform", "Check", "OpenChat", "Posted", "running"]

CHAT_CHECKS = CHAT_SENDING_CHECKS + CHAT_EVENT_CHECKS
