"""Conversation: a place where people talk to one bot, and the people who do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NewType

import msgspec

from nightherd.model.chat.platform import BotId, ChatPlace, Platform
from nightherd.model.ids import JobId, RandomText, SessionId

ConversationId = NewType("ConversationId", str)
MessagingSessionId = NewType("MessagingSessionId", str)

SESSION_PREFIX = "msg-"
NAME_LIMIT = 100


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's row: one bot in one place, with at most one turn at a time."""

    id: ConversationId
    bot: BotId
    agent: str
    platform: Platform
    channel_id: str
    created_at: datetime
    last_activity_at: datetime
    thread_id: str | None = None
    guild_id: str | None = None
    parent_channel_id: str | None = None
    """The channel whose rules hold here, where it is not `channel_id`."""
    is_direct: bool = False
    seen_message_id: str | None = None
    """The latest message that was looked at here, whether it was for the bot or not: history is fetched after it."""
    turn_job_id: JobId | None = None
    """The job of the turn that runs."""
    session_id: SessionId | None = None
    """The agent's session of the latest turn; None before the first, and after a reset."""
    turn_count: int = 0
    number: int = 0

    @property
    def place(self) -> ChatPlace:
        """Where it happens."""
        return ChatPlace(channel_id=self.channel_id, thread_id=self.thread_id)


class MessagingSession(msgspec.Struct, frozen=True, kw_only=True):
    """One person's part in a conversation, until it is reset or has been quiet for too long.

    At most one is active for each agent, platform, channel, thread and user.
    """

    id: MessagingSessionId
    platform: Platform
    channel_id: str
    user_id: str
    agent: str
    conversation_id: ConversationId
    created_at: datetime
    last_activity_at: datetime
    thread_id: str | None = None
    agent_session_id: SessionId | None = None
    """The agent's session that heard the person last."""
    message_count: int = 0
    active: bool = True
    user_name: str = ""
    ended_at: datetime | None = None


class ConversationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations a list shows: newest first, `before` a number, at most `limit`."""

    bot: BotId | None = None
    before: int | None = None
    limit: int = 20


def conversation_id(bot: BotId, place: ChatPlace) -> ConversationId:
    """Return the id of the conversation of a bot in a place; the same place always has the same."""
    thread = "" if place.thread_id is None else f":{place.thread_id}"
    return ConversationId(f"{bot}:{place.channel_id}{thread}")


def session_channel(platform: Platform, place: ChatPlace, user_id: str | None = None) -> str:
    """Return what agents' sessions call a place; with `user_id`, one person in it."""
    parts = (platform.value, place.channel_id, place.thread_id, user_id)
    return ":".join(part for part in parts if part is not None)


def generate_messaging_session_id(random_text: RandomText) -> MessagingSessionId:
    """Return a fresh id. Uniqueness is the store's to check."""
    return MessagingSessionId(f"{SESSION_PREFIX}{random_text(12)}")


def has_gone_quiet(
    session: MessagingSession, at: datetime, expires_after: timedelta | None
) -> bool:
    """Whether the person said nothing there for so long that a new session begins."""
    return expires_after is not None and at - session.last_activity_at >= expires_after


def message_order(message_id: str) -> tuple[int, Sequence[int], str]:
    """Return a key by which messages of one channel are in the order of sending: Discord's and Slack's ids are numbers."""
    parts = message_id.split(".")
    if all(part.isascii() and part.isdigit() for part in parts):
        return 1, tuple(int(part) for part in parts), message_id
    return 0, (), message_id


def latest(one: str | None, other: str | None) -> str | None:
    """Return which of two messages of a channel was sent later."""
    known = [each for each in (one, other) if each is not None]
    return max(known, key=message_order, default=None)
