"""Messages and bots for tests of the rules of chat."""

from datetime import UTC, datetime
from typing import Any

from nightherd.model.chat.incoming import IncomingFile, IncomingMessage
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import BotSettings, ChannelSettings

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
BOT = bot_id(Platform.SLACK, "coder")


def message(text: str = "Hello.", **changes: Any) -> IncomingMessage:
    """What Ada says in the channel C1."""
    fields: dict[str, Any] = {
        "bot": BOT,
        "place": ChatPlace(channel_id="C1"),
        "message_id": "100.1",
        "sent_at": NOON,
        "user_id": "U1",
        "user_name": "Ada",
        "text": text,
    }
    return IncomingMessage(**(fields | changes))


def bot(**changes: Any) -> BotSettings:
    """A bot on Slack that listens in the channel C1, when it is named."""
    fields: dict[str, Any] = {
        "bot": BOT,
        "platform": Platform.SLACK,
        "agent": "coder",
        "channels": (ChannelSettings(id="C1"),),
    }
    return BotSettings(**(fields | changes))


def file(name: str = "plan.pdf", **changes: Any) -> IncomingFile:
    """A small file of an allowed type."""
    fields: dict[str, Any] = {
        "id": f"F-{name}",
        "name": name,
        "media_type": "application/pdf",
        "size": 1_000,
        "url": "https://files.example/1",
    }
    return IncomingFile(**(fields | changes))
