"""Changes of conversations: what was said, turns that answer it, posts on their way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nightherd.model.chat.bot import ChatBot
from nightherd.model.chat.conversation import Conversation, ConversationId, MessagingSession
from nightherd.model.chat.message import ChatMessage, ChatMessageId, ChatMessageTexts, TurnStatus
from nightherd.model.chat.post import PostId, QueuedPost
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.changes import SubmitJob


class SetBotState(msgspec.Struct, frozen=True, kw_only=True):
    """Record how a bot is doing; times of connecting that are None stay as they were."""

    bot: ChatBot


class RecordMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A person said something. The same message changes nothing a second time.

    `conversation` and `session` are what it begins, if there is none yet, or none that is still fresh
    (`expires_after`). `posts` are said back at once.
    """

    conversation: Conversation
    session: MessagingSession
    message: ChatMessage
    texts: ChatMessageTexts
    expires_after: timedelta | None = None
    posts: tuple[QueuedPost, ...] = ()
    moves_cursor: bool = True
    """Whether everything before it in its place was looked at too."""


class SeeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything up to this message of a place was looked at, and nobody's business.

    Without a message the place is only recorded: what is said there from now on is looked at.
    """

    conversation: Conversation
    message_id: str | None


class StartTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Answer messages that wait: the first ones, in their order, by one job.

    Refused while another turn runs, and when those messages are not the first ones that wait any more.
    """

    conversation_id: ConversationId
    messages: tuple[ChatMessageId, ...]
    job: SubmitJob
    at: datetime


class JoinTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that wait are in the job of the turn that runs: they are in its journal already.

    Refused when the execution does not own the job any more, and when those messages are not the first ones that wait.
    """

    job_id: JobId
    epoch: int
    messages: tuple[ChatMessageId, ...]
    at: datetime


class NoteTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Say something during a turn: posts of its journal up to `seq`, or why it waits (`notice`).

    Refused when that was said already, by another process or before a kill.
    """

    job_id: JobId
    posts: tuple[QueuedPost, ...] = ()
    seq: int | None = None
    notice: str | None = None


class FinishTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn's job has ended, and this is the answer: posts that are there get the new text, others are new."""

    job_id: JobId
    status: TurnStatus
    at: datetime
    posts: tuple[QueuedPost, ...] = ()
    drops: tuple[PostId, ...] = ()
    """Posts that are not sent any more if nobody can have seen them; else what `posts` says of them holds."""


class QueuePosts(msgspec.Struct, frozen=True, kw_only=True):
    """Send something that belongs to no turn; posts that are there already stay as they are."""

    posts: tuple[QueuedPost, ...]


class EditPost(msgspec.Struct, frozen=True, kw_only=True):
    """A post is to say something else."""

    post_id: PostId
    text: str
    at: datetime
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class ClaimPost(msgspec.Struct, frozen=True, kw_only=True):
    """Send the first open post of a conversation now. `by` is the only process that sends for its bot."""

    conversation_id: ConversationId
    by: str
    at: datetime


class SettlePost(msgspec.Struct, frozen=True, kw_only=True):
    """What came of sending a version of a post."""

    post_id: PostId
    by: str
    version: int
    at: datetime
    message_id: str | None = None
    error: str | None = None
    is_permanent: bool = False
    is_uncertain: bool = False
    retry_after: timedelta | None = None


class ResetConversation(msgspec.Struct, frozen=True, kw_only=True):
    """Begin anew: what waits is dropped, and the next turn starts in a new session of the agent.

    Where each person has a session, only what is theirs is begun anew. Refused while a turn runs.
    """

    conversation_id: ConversationId
    at: datetime
    reason: str
    session_id: SessionId | None = None
    """The agent's session that is over."""
    user_id: str | None = None
    """Whose; None for everybody's."""
    said_at: datetime | None = None
    """When the person said so, by the platform's clock: what was said after that stays. None for now."""


class EndMessagingSessions(msgspec.Struct, frozen=True, kw_only=True):
    """People said nothing for too long."""

    ids: tuple[str, ...]
    before: datetime
    at: datetime


class ForgetChat(msgspec.Struct, frozen=True, kw_only=True):
    """Retention: remove the texts of messages and posts; their rows stay."""

    messages: tuple[ChatMessageId, ...] = ()
    posts: tuple[PostId, ...] = ()
    at: datetime


ChatChange = (
    SetBotState
    | RecordMessage
    | SeeMessage
    | StartTurn
    | JoinTurn
    | NoteTurn
    | FinishTurn
    | QueuePosts
    | EditPost
    | ClaimPost
    | SettlePost
    | ResetConversation
    | EndMessagingSessions
    | ForgetChat
)
