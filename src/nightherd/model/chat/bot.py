"""ChatBot: one agent on one platform, and how its connection is doing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from nightherd.model.chat.platform import BotId, Platform
from nightherd.model.text import shorten

ERROR_LIMIT = 300


class BotStatus(StrEnum):
    """How a bot is doing."""

    STARTING = "starting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    """It tries again by itself."""
    REFUSED = "refused"
    """The platform refuses it for good: its token was revoked, or lacks a permission."""
    UNAVAILABLE = "unavailable"
    """It cannot be started: a package or a token is missing."""
    STOPPED = "stopped"


class ChatBot(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's row, as its process last saw it."""

    id: BotId
    agent: str
    platform: Platform
    status: BotStatus
    changed_at: datetime
    name: str | None = None
    """What it is called on the platform."""
    error: str | None = None
    connected_at: datetime | None = None
    """When it last connected."""
    first_connected_at: datetime | None = None
    """When it connected for the first time ever: nothing older is answered."""


def shown_error(error: str | None) -> str | None:
    """Return an error as the row has it: on one line, and no longer than it is worth."""
    return None if error is None else shorten(" ".join(error.split()), ERROR_LIMIT)
