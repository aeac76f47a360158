"""OutboxPost: one message of a bot, from the wish to send it to what the platform calls it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, NewType

import msgspec

from nightherd.model.chat.conversation import Conversation, ConversationId
from nightherd.model.chat.platform import BotId
from nightherd.model.ids import JobId
from nightherd.model.lifecycle import Lifecycle

PostId = NewType("PostId", str)

NONCE_LENGTH = 24
"""Discord takes at most 25 characters."""
ERROR_LIMIT = 300


class PostKind(StrEnum):
    """What a post is."""

    ANSWER = "answer"
    """What the agent said: while it says it, the post is edited in place."""
    TOOL = "tool"
    """What a tool gave back."""
    SUMMARY = "summary"
    """What a turn cost."""
    NOTICE = "notice"
    """That a message waits, or why a turn waits."""
    ERROR = "error"
    ITEM = "item"
    """Something that waits for a person, with buttons."""
    FILE = "file"
    """A file of the agent."""


class PostStatus(StrEnum):
    """Where a post stands."""

    PENDING = "pending"
    """To be sent, or to be edited: its wanted version is ahead of the one that was sent."""
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    """Refused for good, or its time has passed."""
    DROPPED = "dropped"
    """Nobody needs it any more."""


POST_LIFECYCLE = Lifecycle(
    "post",
    {
        PostStatus.PENDING: frozenset({PostStatus.SENDING, PostStatus.DROPPED}),
        PostStatus.SENDING: frozenset(
            {PostStatus.PENDING, PostStatus.SENT, PostStatus.FAILED, PostStatus.DROPPED}
        ),
        PostStatus.SENT: frozenset({PostStatus.PENDING}),
        PostStatus.FAILED: frozenset(),
        PostStatus.DROPPED: frozenset(),
    },
)


class OutboxPost(msgspec.Struct, frozen=True, kw_only=True):
    """A post's row: everything a list shows, nothing unbounded."""

    id: PostId
    conversation_id: ConversationId
    bot: BotId
    kind: PostKind
    status: PostStatus
    nonce: str
    """By it the platform, or its history, recognises a message that was sent already."""
    created_at: datetime
    due_at: datetime
    """Not sent before."""
    job_id: JobId | None = None
    """The turn that it belongs to."""
    item_id: str | None = None
    """The inbox item that it asks about."""
    reply_to: str | None = None
    message_id: str | None = None
    """What the platform calls it, once it has taken it."""
    version: int = 1
    """What is wanted: every change of its text is one more."""
    sent_version: int = 0
    """What the platform has; 0 for nothing."""
    is_uncertain: bool = False
    """Whether an earlier attempt may have been taken: it is looked for before it is sent again."""
    attempts: int = 0
    """Attempts in a row that failed."""
    wanted_at: datetime
    """When its latest version was wanted; it is given up a day after that."""
    claimed_by: str | None = None
    """The process that sends it."""
    sent_at: datetime | None = None
    last_error: str | None = None
    removed_at: datetime | None = None
    """When retention removed its text."""
    number: int = 0
    """Place in the order of the conversation."""

    @property
    def is_open(self) -> bool:
        """Whether something is still to be sent."""
        return self.status in (PostStatus.PENDING, PostStatus.SENDING)

    @property
    def is_unseen(self) -> bool:
        """Whether nobody can have seen it: it was not sent, is not on its way, and no attempt was lost."""
        is_waiting = self.status is PostStatus.PENDING and self.message_id is None
        return is_waiting and not self.is_uncertain


class PostTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What a post says, apart from its row: lists never read it."""

    post_id: PostId
    text: str
    """In markdown; it is written in the platform's way when it is sent."""
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`buttons`: those below it. `path` and `name`: the file that it is."""


class QueuedPost(msgspec.Struct, frozen=True, kw_only=True):
    """A post with what it says, not yet numbered."""

    post: OutboxPost
    texts: PostTexts


def post_id(job_id: str, name: str | int) -> PostId:
    """Return the id of a post of a turn, or of anything else that has one post of that name."""
    return PostId(f"{job_id}:{name}")


def nonce_of(id: PostId, version: int = 1) -> str:
    """Return what the platform recognises the post by."""
    return sha256(f"{id}\n{version}".encode()).hexdigest()[:NONCE_LENGTH]


def new_post(
    id: PostId,
    conversation: Conversation,
    kind: PostKind,
    text: str,
    at: datetime,
    *,
    job_id: JobId | None = None,
    reply_to: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> QueuedPost:
    """Return a post that is to be sent at once."""
    row = OutboxPost(
        id=id,
        conversation_id=conversation.id,
        bot=conversation.bot,
        kind=kind,
        status=PostStatus.PENDING,
        nonce=nonce_of(id),
        created_at=at,
        due_at=at,
        wanted_at=at,
        job_id=job_id,
        reply_to=reply_to,
    )
    return QueuedPost(post=row, texts=PostTexts(post_id=id, text=text, details=details or {}))
