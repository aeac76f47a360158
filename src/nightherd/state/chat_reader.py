"""Reading conversations, what was said in them, and what is on its way there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from nightherd.db.connection import Value
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
from nightherd.model.chat.post import OutboxPost, PostId, PostTexts
from nightherd.model.ids import JobId
from nightherd.model.text import utc_text
from nightherd.state.job_reader import NEWEST
from nightherd.state.schedule_reader import SqliteScheduleReader

RowT = TypeVar("RowT", bound=msgspec.Struct)


class SqliteChatReader(SqliteScheduleReader):
    """Questions about chat."""

    def list_chat_bots(self) -> Sequence[ChatBot]:
        return self._listed(ChatBot, "list_chat_bots")

    def find_conversation(self, id: ConversationId) -> Conversation | None:
        rows = self._rows()
        return rows.get(Conversation, id) if rows else None

    def list_conversations(self, query: ConversationQuery) -> Sequence[Conversation]:
        page = (_before(query.before), query.limit)
        if query.bot is None:
            return self._listed(Conversation, "list_conversations", *page)
        return self._listed(Conversation, "list_conversations_of_bot", *page, query.bot)

    def active_conversations(
        self, bot: BotId, since: datetime, limit: int
    ) -> Sequence[Conversation]:
        return self._listed(Conversation, "active_conversations", bot, utc_text(since), limit)

    def answering_conversations(self, bot: BotId) -> Sequence[Conversation]:
        return self._listed(Conversation, "answering_conversations", bot)

    def waiting_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        return [ConversationId(id) for id in self._ids("waiting_conversations", bot)]

    def unsent_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        return [ConversationId(id) for id in self._ids("unsent_conversations", bot)]

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        return self._listed(MessagingSession, "active_messaging_sessions", id)

    def quiet_messaging_sessions(
        self, agent: str, before: datetime, limit: int
    ) -> Sequence[MessagingSessionId]:
        found = self._ids("quiet_messaging_sessions", agent, utc_text(before), limit)
        return [MessagingSessionId(id) for id in found]

    def find_chat_message(self, id: ChatMessageId) -> ChatMessage | None:
        rows = self._rows()
        return rows.get(ChatMessage, id) if rows else None

    def find_chat_message_texts(self, id: ChatMessageId) -> ChatMessageTexts | None:
        rows = self._rows()
        return rows.get(ChatMessageTexts, id) if rows else None

    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        return self._listed(ChatMessage, "waiting_chat_messages", id, limit)

    def list_chat_messages(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatMessage]:
        return self._listed(ChatMessage, "list_chat_messages", id, _before(before), limit)

    def chat_messages_of_job(self, job_id: JobId) -> Sequence[ChatMessage]:
        return self._listed(ChatMessage, "chat_messages_of_job", job_id)

    def count_chat_messages(self, bot: BotId, user_id: str, since: datetime) -> int:
        rows = self._rows()
        return rows.number("count_chat_messages", bot, user_id, utc_text(since)) if rows else 0

    def old_chat_messages(self, before: datetime, limit: int) -> Sequence[ChatMessageId]:
        found = self._ids("old_chat_messages", utc_text(before), limit)
        return [ChatMessageId(id) for id in found]

    def find_chat_turn(self, job_id: JobId) -> ChatTurn | None:
        rows = self._rows()
        return rows.get(ChatTurn, job_id) if rows else None

    def list_chat_turns(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatTurn]:
        return self._listed(ChatTurn, "list_chat_turns", id, _before(before), limit)

    def find_post(self, id: PostId) -> OutboxPost | None:
        rows = self._rows()
        return rows.get(OutboxPost, id) if rows else None

    def find_post_texts(self, id: PostId) -> PostTexts | None:
        rows = self._rows()
        return rows.get(PostTexts, id) if rows else None

    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        rows = self._rows()
        return rows.find(OutboxPost, "first_open_post", id) if rows else None

    def list_posts(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[OutboxPost]:
        return self._listed(OutboxPost, "list_posts", id, _before(before), limit)

    def posts_of_job(self, job_id: JobId) -> Sequence[OutboxPost]:
        return self._listed(OutboxPost, "posts_of_job", job_id)

    def posts_of_item(self, item_id: str) -> Sequence[OutboxPost]:
        return self._listed(OutboxPost, "posts_of_item", item_id)

    def post_of_message(self, id: ConversationId, message_id: str) -> OutboxPost | None:
        rows = self._rows()
        return rows.find(OutboxPost, "post_of_message", id, message_id) if rows else None

    def failed_posts(self, bot: BotId, limit: int) -> Sequence[OutboxPost]:
        return self._listed(OutboxPost, "failed_posts", bot, limit)

    def old_posts(self, before: datetime, limit: int) -> Sequence[PostId]:
        return [PostId(id) for id in self._ids("old_posts", utc_text(before), limit)]

    def _listed(self, kind: type[RowT], query: str, *values: Value) -> Sequence[RowT]:
        rows = self._rows()
        return rows.list(kind, query, values) if rows else ()

    def _ids(self, query: str, *values: Value) -> Sequence[str]:
        rows = self._rows()
        return [str(id) for (id,) in rows.values(query, *values)] if rows else ()


def _before(number: int | None) -> int:
    return NEWEST if number is None else number
