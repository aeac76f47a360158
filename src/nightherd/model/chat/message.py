"""ChatMessage: what a person said to a bot, once; and ChatTurn, the job that answers some of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

import msgspec

from nightherd.model.chat.conversation import ConversationId, MessagingSessionId
from nightherd.model.chat.platform import BotId
from nightherd.model.ids import JobId, SessionId
from nightherd.model.lifecycle import Lifecycle

ChatMessageId = NewType("ChatMessageId", str)

COMMAND_PREFIX = "command:"
"""How the id of a message begins that a slash command made: the platform has no message by that id."""


class MessageStatus(StrEnum):
    """Where a message stands."""

    WAITING = "waiting"
    TAKEN = "taken"
    """It is in exactly one job: `job_id`."""
    DROPPED = "dropped"
    """No job gets it: the conversation was reset, or the person said too much; `reason` says so."""


MESSAGE_LIFECYCLE = Lifecycle(
    "message",
    {
        MessageStatus.WAITING: frozenset({MessageStatus.TAKEN, MessageStatus.DROPPED}),
        MessageStatus.TAKEN: frozenset(),
        MessageStatus.DROPPED: frozenset(),
    },
)


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message's row: everything a list shows, nothing unbounded."""

    id: ChatMessageId
    conversation_id: ConversationId
    bot: BotId
    session_id: MessagingSessionId
    status: MessageStatus
    platform_message_id: str
    user_id: str
    user_name: str
    sent_at: datetime
    received_at: datetime
    is_mention: bool = False
    job_id: JobId | None = None
    reason: str | None = None
    files: int = 0
    """How many files were sent along."""
    removed_at: datetime | None = None
    """When retention removed its text."""
    number: int = 0
    """Place in the order of recording."""

    @property
    def is_waiting(self) -> bool:
        """Whether no turn has it yet."""
        return self.status is MessageStatus.WAITING

    @property
    def message_to_reply_to(self) -> str | None:
        """What the platform calls it; None for a slash command, which is no message there."""
        is_command = self.platform_message_id.startswith(COMMAND_PREFIX)
        return None if is_command else self.platform_message_id

    def was_said_by(self, at: datetime | None) -> bool:
        """Whether it was said by then, by the platform's clock; that is not known of a slash command."""
        return at is None or self.message_to_reply_to is None or self.sent_at <= at


class ChatMessageTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What a message says, apart from its row: lists never read it."""

    message_id: ChatMessageId
    text: str
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`files`: those that were sent along, as documents of `IncomingFile`. `refused`: documents of `RefusedFile`.
    `repeats`: ids of earlier messages that are asked once more, instead of this one, which says nothing itself."""


class TurnStatus(StrEnum):
    """Where a turn stands."""

    RUNNING = "running"
    """Its job has not ended, or its answer is not recorded yet."""
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"


TURN_LIFECYCLE = Lifecycle(
    "turn",
    {
        TurnStatus.RUNNING: frozenset(
            {TurnStatus.ANSWERED, TurnStatus.FAILED, TurnStatus.CANCELLED}
        ),
        TurnStatus.ANSWERED: frozenset(),
        TurnStatus.FAILED: frozenset(),
        TurnStatus.CANCELLED: frozenset(),
    },
)


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's row: the job that answers messages of a conversation."""

    job_id: JobId
    conversation_id: ConversationId
    bot: BotId
    session_id: MessagingSessionId
    """The person who spoke last before it began."""
    status: TurnStatus
    started_at: datetime
    message_count: int
    reply_to: str | None = None
    """The platform's id of the last message that it began with."""
    agent_session_id: SessionId | None = None
    seq: int = 0
    """How far posts were made of the job's journal."""
    notice: str | None = None
    """What people were told last about why it waits: a suspension is told once."""
    ended_at: datetime | None = None
    number: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it runs."""
        return self.status is TurnStatus.RUNNING


def chat_message_id(bot: BotId, channel_id: str, platform_message_id: str) -> ChatMessageId:
    """Return the id of a message to a bot: however often the platform delivers it, there is one row."""
    return ChatMessageId(f"{bot}:{channel_id}:{platform_message_id}")
