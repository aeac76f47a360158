"""Changes of chat with little to say: messages by number, for tests that need some and do not care which."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from nightherd.model.chat.changes import RecordMessage
from nightherd.model.chat.conversation import (
    Conversation,
    MessagingSession,
    MessagingSessionId,
    conversation_id,
)
from nightherd.model.chat.message import (
    ChatMessage,
    ChatMessageTexts,
    MessageStatus,
    chat_message_id,
)
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.post import PostId, PostKind, QueuedPost, new_post
from nightherd.model.ids import JobId
from nightherd.testing.state_values import BEGINNING

AGENT = "grazer"
BOT = bot_id(Platform.SLACK, AGENT)
PLACE = ChatPlace(channel_id="C1")


def conversation(*, agent: str = AGENT, place: ChatPlace = PLACE) -> Conversation:
    """The conversation of an agent in a place, as it begins."""
    bot = bot_id(Platform.SLACK, agent)
    return Conversation(
        id=conversation_id(bot, place),
        bot=bot,
        agent=agent,
        platform=Platform.SLACK,
        channel_id=place.channel_id,
        thread_id=place.thread_id,
        created_at=BEGINNING,
        last_activity_at=BEGINNING,
    )


def said(
    number: int,
    *,
    text: str = "Graze.",
    user: str = "U1",
    agent: str = AGENT,
    place: ChatPlace = PLACE,
    session: str | None = None,
    files: tuple[Mapping[str, Any], ...] = (),
) -> RecordMessage:
    """Message `number` of a person, a second after the one before."""
    at = BEGINNING + timedelta(seconds=number)
    where = conversation(agent=agent, place=place)
    begun = MessagingSession(
        id=MessagingSessionId(f"msg-{session or number}"),
        platform=where.platform,
        channel_id=where.channel_id,
        thread_id=where.thread_id,
        user_id=user,
        agent=agent,
        conversation_id=where.id,
        created_at=at,
        last_activity_at=at,
    )
    message = ChatMessage(
        id=chat_message_id(where.bot, where.channel_id, f"100.{number}"),
        conversation_id=where.id,
        bot=where.bot,
        session_id=begun.id,
        status=MessageStatus.WAITING,
        platform_message_id=f"100.{number}",
        user_id=user,
        user_name="Ada",
        sent_at=at,
        received_at=at,
        files=len(files),
    )
    texts = ChatMessageTexts(
        message_id=message.id, text=text, details={"files": list(files)} if files else {}
    )
    return RecordMessage(conversation=where, session=begun, message=message, texts=texts)


def post(id: str, text: str, *, kind: PostKind = PostKind.ANSWER) -> QueuedPost:
    """Something to send; the part before the colon of its id is the job of its turn."""
    job = JobId(id.partition(":")[0]) if ":" in id else None
    return new_post(PostId(id), conversation(), kind, text, BEGINNING, job_id=job)
