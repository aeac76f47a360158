"""Every kind of row that is about chat."""

from __future__ import annotations

from nightherd.model.chat.bot import ChatBot
from nightherd.model.chat.conversation import Conversation, MessagingSession
from nightherd.model.chat.message import ChatMessage, ChatMessageTexts, ChatTurn
from nightherd.model.chat.post import OutboxPost, PostTexts

ChatRow = (
    ChatBot
    | Conversation
    | MessagingSession
    | ChatMessage
    | ChatMessageTexts
    | ChatTurn
    | OutboxPost
    | PostTexts
)
