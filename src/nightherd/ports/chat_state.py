"""Questions about conversations, what was said in them, and what is on its way there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what chat needs
    from collections.abc import Sequence
    from datetime import datetime

    from nightherd.model.chat.bot import ChatBot
    from nightherd.model.chat.conversation import (
        Conversation,
        ConversationId,
        ConversationQuery,
        MessagingSession,
        MessagingSessionId,
    )
    from nightherd.model.chat.message import (
        ChatMessage,
        ChatMessageId,
        ChatMessageTexts,
        ChatTurn,
    )
    from nightherd.model.chat.platform import BotId
    from nightherd.model.chat.post import OutboxPost, PostId, PostTexts
    from nightherd.model.ids import JobId


class ChatReader(Protocol):
    """Questions about chat. Lists never read texts."""

    def list_chat_bots(self) -> Sequence[ChatBot]:
        """Every bot there ever was, by id."""

    def find_conversation(self, id: ConversationId) -> Conversation | None: ...
    def list_conversations(self, query: ConversationQuery) -> Sequence[Conversation]: ...
    def active_conversations(
        self, bot: BotId, since: datetime, limit: int
    ) -> Sequence[Conversation]:
        """The bot's conversations in which something happened since then, the liveliest first."""

    def answering_conversations(self, bot: BotId) -> Sequence[Conversation]:
        """The bot's conversations in which a turn runs."""

    def waiting_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        """The bot's conversations in which messages wait."""

    def unsent_conversations(self, bot: BotId) -> Sequence[ConversationId]:
        """The bot's conversations with something to send."""

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        """Those who take part in a conversation."""

    def quiet_messaging_sessions(
        self, agent: str, before: datetime, limit: int
    ) -> Sequence[MessagingSessionId]:
        """The agent's active sessions in which nothing was said since then."""

    def find_chat_message(self, id: ChatMessageId) -> ChatMessage | None: ...
    def find_chat_message_texts(self, id: ChatMessageId) -> ChatMessageTexts | None: ...
    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        """The messages of a conversation that no turn has yet, in order."""

    def list_chat_messages(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatMessage]:
        """A conversation's messages, newest first, those before the number `before`."""

    def chat_messages_of_job(self, job_id: JobId) -> Sequence[ChatMessage]:
        """The messages that a job answers, in order."""

    def count_chat_messages(self, bot: BotId, user_id: str, since: datetime) -> int:
        """How many messages a person sent to the bot since then."""

    def old_chat_messages(self, before: datetime, limit: int) -> Sequence[ChatMessageId]:
        """Messages from before then whose texts are still there, oldest first."""

    def find_chat_turn(self, job_id: JobId) -> ChatTurn | None: ...
    def list_chat_turns(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[ChatTurn]:
        """A conversation's turns, newest first, those before the number `before`."""

    def find_post(self, id: PostId) -> OutboxPost | None: ...
    def find_post_texts(self, id: PostId) -> PostTexts | None: ...
    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        """What is to be sent next in a conversation."""

    def list_posts(
        self, id: ConversationId, limit: int, before: int | None = None
    ) -> Sequence[OutboxPost]:
        """A conversation's posts, newest first, those before the number `before`."""

    def posts_of_job(self, job_id: JobId) -> Sequence[OutboxPost]:
        """The posts of a turn, in order."""

    def posts_of_item(self, item_id: str) -> Sequence[OutboxPost]:
        """The posts that ask about an inbox item, in order."""

    def post_of_message(self, id: ConversationId, message_id: str) -> OutboxPost | None:
        """The post that the platform calls so."""

    def failed_posts(self, bot: BotId, limit: int) -> Sequence[OutboxPost]:
        """What the bot could not send, newest first."""

    def old_posts(self, before: datetime, limit: int) -> Sequence[PostId]:
        """Posts from before then whose texts are still there, oldest first."""
