"""Conversations in memory: what decisions and readers ask about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from nightherd.model.chat.bot import ChatBot
from nightherd.model.chat.conversation import (
    Conversation,
    ConversationId,
    ConversationQuery,
    MessagingSession,
    MessagingSessionId,
)
from nightherd.model.chat.message import ChatMessage, ChatMessageId, ChatMessageTexts, ChatTurn
from nightherd.model.chat.platform import BotId
from nightherd.model.chat.post import OutboxPost, PostId, PostStatus, PostTexts
from nightherd.model.ids import JobId

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows

RowT = TypeVar("RowT", bound=msgspec.Struct)
NumberedT = TypeVar("NumberedT", Conversation, ChatMessage, ChatTurn, OutboxPost)


class MemoryChatRows:
    """The part of the rows in memory that is about chat."""

    if TYPE_CHECKING:

        def all(self, row_type: type[RowT]) -> Sequence[RowT]: ...
        def get(self, kind: type[RowT], key: str) -> RowT | None: ...

    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        mine = [one for one in self.all(ChatMessage) if one.conversation_id == id]
        return _in_order(one for one in mine if one.is_waiting)[:limit]

    def active_messaging_session(
        self, conversation: Conversation, user_id: str
    ) -> MessagingSession | None:
        wanted = (
            conversation.agent,
            conversation.platform,
            conversation.channel_id,
            conversation.thread_id or "",
            user_id,
        )
        active = [one for one in self.all(MessagingSession) if one.active]
        return next((one for one in active if _key(one) == wanted), None)

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        mine = [one for one in self.all(MessagingSession) if one.conversation_id == id]
        active = [one for one in mine if one.active]
        return sorted(active, key=lambda one: (one.created_at, one.id))

    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        mine = [one for one in self.all(OutboxPost) if one.conversation_id == id]
        return next(iter(_in_order(one for one in mine if one.is_open)), None)

    def next_conversation_number(self) -> int:
        return self._next(Conversation)

    def next_chat_message_number(self) -> int:
        return self._next(ChatMessage)

    def next_chat_turn_number(self) -> int:
        return self._next(ChatTurn)

    def next_post_number(self) -> int:
        return self._next(OutboxPost)

    def _next(self, kind: type[NumberedT]) -> int:
        return max((one.number for one in self.all(kind)), default=0) + 1


class MemoryChatReader:
    """The part of `MemoryReader` that is about chat."""

    if TYPE_CHECKING:
        _rows: MemoryRows

    def list_chat_bots(self) -> Sequence[ChatBot]:
        return sorted(self._rows.all(ChatBot), key=lambda one: one.id)

    def find_conversation(self, id: ConversationId) -> Conversation | None:
        return self._rows.get(Conversation, id)

    def list_conversations(self, query: ConversationQuery) -> Sequence[Conversation]:
        found = [one for one in self._rows.all(Conversation) if query.bot in (None, one.bot)]
        return _page(found, query.before, query.limit)

    def active_conversations(
        self, bot: BotId, since: datetime, limit: int
    ) -> Sequence[Conversation]:
        mine = [one for one in self._conversations(bot) if one.last_activity_at >= since]
        return sorted(mine, key=lambda one: one.last_activity_at, reverse=True)[:limit]

    def answering_conversations(self, bot: BotId) -> Sequence[Conversation]:
        return [one for one in self._conversations(bot) if one.turn_job_id is not None]

    def _conversations(self, bot: BotId) -> Sequence[Conversation]:
        return _in_order(one for one in self._rows.all(Conversation) if one.bot == bot)

    def waiting_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        waiting = [one for one in self._rows.all(ChatMessage) if one.is_waiting]
        return sorted({one.conversation_id for one in waiting if one.bot == bot})

    def unsent_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        unsent = [one for one in self._rows.all(OutboxPost) if one.is_open]
        return sorted({one.conversation_id for one in unsent if one.bot == bot})

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        return self._rows.active_messaging_sessions(id)

    def quiet_messaging_sessions(
        self, agent: str, before: datetime, limit: int
    ) -> Sequence[MessagingSessionId]:
        mine = [one for one in self._rows.all(MessagingSession) if one.agent == agent]
        quiet = [one for one in mine if one.active and one.last_activity_at < before]
        return [one.id for one in sorted(quiet, key=lambda one: one.last_activity_at)][:limit]

    def find_chat_message(self, id: ChatMessageId) -> ChatMessage | None:
        return self._rows.get(ChatMessage, id)

    def find_chat_message_texts(self, id: ChatMessageId) -> ChatMessageTexts | None:
        return self._rows.get(ChatMessageTexts, id)

    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        return self._rows.waiting_chat_messages(id, limit)

    def list_chat_messages(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatMessage]:
        mine = [one for one in self._rows.all(ChatMessage) if one.conversation_id == id]
        return _page(mine, before, limit)

    def chat_messages_of_job(self, job_id: JobId) -> Sequence[ChatMessage]:
        return _in_order(one for one in self._rows.all(ChatMessage) if one.job_id == job_id)

    def count_chat_messages(self, bot: BotId, user_id: str, since: datetime) -> int:
        mine = [one for one in self._rows.all(ChatMessage) if one.bot == bot]
        return sum(one.user_id == user_id and one.received_at >= since for one in mine)

    def old_chat_messages(self, before: datetime, limit: int) -> Sequence[ChatMessageId]:
        kept = [one for one in self._rows.all(ChatMessage) if one.removed_at is None]
        old = [one for one in kept if one.received_at < before and not one.is_waiting]
        return [one.id for one in _sorted(old, lambda one: one.received_at)][:limit]

    def find_chat_turn(self, job_id: JobId) -> ChatTurn | None:
        return self._rows.get(ChatTurn, job_id)

    def list_chat_turns(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatTurn]:
        mine = [one for one in self._rows.all(ChatTurn) if one.conversation_id == id]
        return _page(mine, before, limit)

    def find_post(self, id: PostId) -> OutboxPost | None:
        return self._rows.get(OutboxPost, id)

    def find_post_texts(self, id: PostId) -> PostTexts | None:
        return self._rows.get(PostTexts, id)

    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        return self._rows.first_open_post(id)

    def list_posts(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[OutboxPost]:
        mine = [one for one in self._rows.all(OutboxPost) if one.conversation_id == id]
        return _page(mine, before, limit)

    def posts_of_job(self, job_id: JobId) -> Sequence[OutboxPost]:
        return _in_order(one for one in self._rows.all(OutboxPost) if one.job_id == job_id)

    def posts_of_item(self, item_id: str) -> Sequence[OutboxPost]:
        return _in_order(one for one in self._rows.all(OutboxPost) if one.item_id == item_id)

    def post_of_message(self, id: ConversationId, message_id: str) -> OutboxPost | None:
        mine = [one for one in self._rows.all(OutboxPost) if one.conversation_id == id]
        found = _page([one for one in mine if one.message_id == message_id], None, 1)
        return next(iter(found), None)

    def failed_posts(self, bot: BotId, limit: int) -> Sequence[OutboxPost]:
        mine = [one for one in self._rows.all(OutboxPost) if one.bot == bot]
        return _page([one for one in mine if one.status is PostStatus.FAILED], None, limit)

    def old_posts(self, before: datetime, limit: int) -> Sequence[PostId]:
        kept = [one for one in self._rows.all(OutboxPost) if one.removed_at is None]
        old = [one for one in kept if one.created_at < before and _is_over(one)]
        return [one.id for one in _sorted(old, lambda one: one.created_at)][:limit]


def _is_over(post: OutboxPost) -> bool:
    return not post.is_open


def _key(session: MessagingSession) -> tuple[str, ...]:
    place = (session.platform, session.channel_id, session.thread_id or "")
    return (session.agent, *place, session.user_id)


def _in_order(rows: Iterable[NumberedT]) -> list[NumberedT]:
    return sorted(rows, key=lambda row: row.number)


def _sorted(rows: Iterable[RowT], key: Callable[[RowT], datetime]) -> list[RowT]:
    return sorted(rows, key=key)


def _page(rows: Iterable[NumberedT], before: int | None, limit: int) -> list[NumberedT]:
    known = [row for row in rows if before is None or row.number < before]
    return sorted(known, key=lambda row: row.number, reverse=True)[:limit]
