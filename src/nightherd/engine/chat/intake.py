"""Intake: from a message on a platform to a row, once. Live messages and those from history take the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.chat.chat_commands import CommandResult, carry_out
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.question_replies import answer_by_message, question_answered_by
from nightherd.engine.operations.new_job import apply_with_fresh_ids
from nightherd.errors import NightherdError
from nightherd.model.change import Refused, Why
from nightherd.model.chat.accept import (
    Acceptance,
    Decision,
    Spoken,
    Surroundings,
    accept,
    channel_settings,
    message_limit,
    why_not_admitted,
)
from nightherd.model.chat.changes import QueuePosts, RecordMessage, SeeMessage
from nightherd.model.chat.commands import resolve_command
from nightherd.model.chat.conversation import (
    Conversation,
    ConversationId,
    MessagingSession,
    conversation_id,
    generate_messaging_session_id,
    latest,
)
from nightherd.model.chat.incoming import ChatCommand, IncomingMessage, storable
from nightherd.model.chat.message import (
    COMMAND_PREFIX,
    ChatMessage,
    ChatMessageTexts,
    MessageStatus,
    chat_message_id,
)
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.post import PostKind, QueuedPost, new_post, post_id
from nightherd.model.chat.settings import BotSettings, LogLevel

HOUR = timedelta(hours=1)
MOST_CURSORS = 200
"""Places whose cursors are kept in memory before they are written."""
NOT_ALLOWED = "You may not use me here."
WORKING = frozenset({"run", "skill", "retry"})
"""Commands that make work: limits of messages hold for them."""
TAKEN_ALREADY = "I am on it already."


class Intake:
    """Decides about messages and records them. A message that is known already changes nothing."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._seen: dict[ConversationId, SeeMessage] = {}

    async def take(
        self, message: IncomingMessage, *, since: datetime | None = None, moves_cursor: bool = True
    ) -> None:
        """Take a message. Once this returns it is durable, known already, or nobody's business."""
        context, message = self._context, self._fit_to_record(message)
        bot = context.settings.bot
        id = chat_message_id(bot, message.place.channel_id, message.message_id)
        if context.fleet.reader.find_chat_message(id) is not None:
            return
        decided = accept(message, context.settings, self._surroundings(message, since))
        match decided.decision:
            case Decision.TAKE:
                if not await self._answer(message, moves_cursor=moves_cursor):
                    await self._record(message, decided, moves_cursor=moves_cursor)
            case Decision.REFUSE if decided.reply is not None:
                await self._record(message, decided, moves_cursor=moves_cursor)
            case Decision.COMMAND:
                await self._obey(message, decided, moves_cursor=moves_cursor)
            case _:
                write_log(
                    context, "ignored", decided.reason, detail=LogLevel.VERBOSE, message_id=id
                )
                if moves_cursor:
                    await self._see(message)

    def _fit_to_record(self, message: IncomingMessage) -> IncomingMessage:
        """The message without halves of characters, and its files without secrets in their names."""
        mask = self._context.fleet.secrets.mask
        files = tuple(replace(one, name=str(mask(one.name))) for one in message.files)
        return storable(replace(message, files=files))

    async def command(self, command: ChatCommand) -> str:
        """Carry out a slash command; returns what to say to that person alone."""
        context, command = self._context, storable(command)
        reason = why_not_admitted(command, context.settings)
        if reason is not None:
            write_log(context, "ignored", reason, detail=LogLevel.VERBOSE, command=command.name)
            return NOT_ALLOWED
        parsed = resolve_command(command.name, command.argument)
        refusal = self._above_limit(command) if parsed.name in WORKING else None
        if refusal is not None:
            return refusal
        message_id = f"{COMMAND_PREFIX}{command.command_id}"
        id = chat_message_id(context.settings.bot, command.place.channel_id, message_id)
        if context.fleet.reader.find_chat_message(id) is not None:
            return TAKEN_ALREADY

        def record(result: CommandResult) -> RecordMessage:
            return self._change(
                command,
                message_id,
                context.fleet.clock.now(),
                text=result.ask or "",
                details=result.details,
                moves_cursor=False,
                reason=None if result.ask is not None else f"command {parsed.name}",
            )

        result = await carry_out(parsed, command, context, record)
        if result.effect is None and (result.ask is not None or parsed.name in WORKING):
            # One that makes work counts like a message, also where no turn gets it.
            await self._apply(record(result))
        return result.text

    async def write_cursors(self) -> None:
        """Record how far places were looked at in which nothing was said to the bot."""
        changes, self._seen = tuple(self._seen.values()), {}
        if changes:
            await self._context.fleet.state.apply(changes)

    async def _record(
        self, message: IncomingMessage, decided: Acceptance, *, moves_cursor: bool
    ) -> None:
        is_taken = decided.decision is Decision.TAKE
        files = (*decided.files.fetched, *decided.files.voices)
        details: dict[str, Any] = {}
        if files:
            details["files"] = msgspec.to_builtins(files)
        if decided.files.refused:
            details["refused"] = msgspec.to_builtins(decided.files.refused)
        change = self._change(
            message,
            message.message_id,
            message.sent_at,
            text=message.text,
            details=details,
            moves_cursor=moves_cursor,
            files=len(files),
            reason=None if is_taken else decided.reason,
        )
        if decided.reply is not None:
            change = with_reply(change, decided.reply)
        await self._apply(change)

    async def _answer(self, message: IncomingMessage, *, moves_cursor: bool) -> bool:
        """Take the message as the answer to a question of the agent; whether it was one."""
        context = self._context
        item = question_answered_by(message, context)
        if item is None:
            return False
        change = self._change(
            message,
            message.message_id,
            message.sent_at,
            text=message.text,
            details={},
            moves_cursor=moves_cursor,
            reason=f"answer to {item.id}",
        )
        problem = await answer_by_message(item, message, change, context)
        is_recorded = context.fleet.reader.find_chat_message(change.message.id) is not None
        if problem is None:
            return is_recorded or await self._apply(change)
        if is_recorded:
            # Somebody else was quicker, and by now it is too late to have it wait for a turn.
            told = QueuePosts(posts=replies(change, (problem,)))
            await context.fleet.state.apply([told])
            context.signals.posts.set()
        return is_recorded

    async def _obey(
        self, message: IncomingMessage, decided: Acceptance, *, moves_cursor: bool
    ) -> None:
        """Carry out a command that was written as a message. It is recorded with what it made, so it acts once."""
        context = self._context
        command = decided.command
        assert command is not None  # noqa: S101 (a command is decided with it)

        def record(result: CommandResult) -> RecordMessage:
            change = self._change(
                message,
                message.message_id,
                message.sent_at,
                text=message.text if result.ask is None else result.ask,
                details=result.details,
                moves_cursor=moves_cursor,
                reason=None if result.ask is not None else f"command {command.name}",
            )
            return change if result.ask is not None else with_reply(change, result.text)

        try:
            refusal = self._above_limit(message) if command.name in WORKING else None
            if refusal is None:
                result = await carry_out(command, message, context, record)
            else:
                result = CommandResult(text=refusal)
        except NightherdError as error:
            result = CommandResult(text=f"That failed: {error.message}")
        change = record(result)
        if context.fleet.reader.find_chat_message(change.message.id) is None:
            await self._apply(change)
        else:  # recorded with what it has changed
            context.signals.posts.set()

    async def _apply(self, change: RecordMessage) -> bool:
        """Record it; whether it was new."""
        context = self._context
        fleet = context.fleet

        def renew(one: RecordMessage) -> RecordMessage:
            fresh = generate_messaging_session_id(fleet.random_text)
            return replace(
                one,
                session=replace(one.session, id=fresh),
                message=replace(one.message, session_id=fresh),
            )

        context.probe("chat.before_record")
        (answer,) = await apply_with_fresh_ids([change], renew, fleet.state.apply)
        context.probe("chat.after_record")
        if isinstance(answer, Refused):
            if answer.why is Why.DUPLICATE:
                return False
            raise NightherdError(f"message {change.message.id} was not recorded: {answer.message}")
        write_log(
            context,
            "message",
            change.message.reason,
            detail=LogLevel.VERBOSE,
            message_id=change.message.id,
            status=change.message.status.value,
        )
        if change.message.is_waiting:
            context.signals.messages.set()
        if change.posts:
            context.signals.posts.set()
        return True

    def _change(
        self,
        spoken: Spoken,
        message_id: str,
        sent_at: datetime,
        *,
        text: str,
        details: Mapping[str, Any],
        moves_cursor: bool,
        files: int = 0,
        reason: str | None = None,
    ) -> RecordMessage:
        """The change that records what was said; with a reason it is dropped at once."""
        context = self._context
        settings, fleet = context.settings, context.fleet
        at = fleet.clock.now()
        place = conversation_of(spoken, settings, at)
        session = MessagingSession(
            id=generate_messaging_session_id(fleet.random_text),
            platform=settings.platform,
            channel_id=place.channel_id,
            thread_id=place.thread_id,
            user_id=spoken.user_id,
            agent=settings.agent,
            conversation_id=place.id,
            created_at=at,
            last_activity_at=at,
            user_name=spoken.user_name,
        )
        message = ChatMessage(
            id=chat_message_id(settings.bot, place.channel_id, message_id),
            conversation_id=place.id,
            bot=settings.bot,
            session_id=session.id,
            status=MessageStatus.WAITING if reason is None else MessageStatus.DROPPED,
            platform_message_id=message_id,
            user_id=spoken.user_id,
            user_name=spoken.user_name,
            sent_at=sent_at,
            received_at=at,
            is_mention=isinstance(spoken, IncomingMessage) and spoken.is_mention,
            reason=reason,
            files=files,
        )
        masked = str(fleet.secrets.mask(text))
        return RecordMessage(
            conversation=place,
            session=session,
            message=message,
            texts=ChatMessageTexts(message_id=message.id, text=masked, details=dict(details)),
            expires_after=settings.session.max_idle,
            moves_cursor=moves_cursor,
        )

    def _surroundings(self, message: IncomingMessage, since: datetime | None) -> Surroundings:
        context = self._context
        return Surroundings(
            other_bots=context.other_bots(),
            takes_part=self._takes_part(message),
            sent_in_hour=self._sent_in_hour(message),
            can_transcribe=context.transcriber is not None,
            since=since,
        )

    def _takes_part(self, message: IncomingMessage) -> bool:
        if message.place.thread_id is None and message.parent_channel_id is None:
            return False
        id = conversation_id(self._context.settings.bot, message.place)
        return bool(self._context.fleet.reader.active_messaging_sessions(id))

    def _sent_in_hour(self, spoken: Spoken) -> int:
        """Messages of the person in the last hour; 0 where nobody asks."""
        context = self._context
        if message_limit(spoken, context.settings) is None:
            return 0
        begin = context.fleet.clock.now() - HOUR
        return context.fleet.reader.count_chat_messages(context.settings.bot, spoken.user_id, begin)

    def _above_limit(self, spoken: Spoken) -> str | None:
        limit = message_limit(spoken, self._context.settings)
        if limit is None or self._sent_in_hour(spoken) < limit:
            return None
        return f"You have sent {limit} messages in the last hour. Please try again later."

    async def _see(self, message: IncomingMessage) -> None:
        """Remember that a message was looked at, in places whose history is fetched."""
        context = self._context
        place = conversation_of(message, context.settings, context.fleet.clock.now())
        is_listed = not message.is_direct and channel_settings(message, context.settings)
        if not is_listed and context.fleet.reader.find_conversation(place.id) is None:
            return
        known = self._seen.get(place.id)
        last = latest(known.message_id if known is not None else None, message.message_id)
        self._seen[place.id] = SeeMessage(conversation=place, message_id=last)
        if len(self._seen) >= MOST_CURSORS:
            await self.write_cursors()


def conversation_of(spoken: Spoken, settings: BotSettings, at: datetime) -> Conversation:
    """Return the conversation that something is said in, as it begins."""
    return replace(
        conversation_at(spoken.place, settings, at),
        guild_id=spoken.guild_id,
        parent_channel_id=spoken.parent_channel_id,
        is_direct=spoken.is_direct,
    )


def conversation_at(place: ChatPlace, settings: BotSettings, at: datetime) -> Conversation:
    """Return the conversation of a place, as it begins."""
    return Conversation(
        id=conversation_id(settings.bot, place),
        bot=settings.bot,
        agent=settings.agent,
        platform=settings.platform,
        channel_id=place.channel_id,
        thread_id=place.thread_id,
        created_at=at,
        last_activity_at=at,
    )


def with_reply(change: RecordMessage, text: str) -> RecordMessage:
    """Return the change with an answer that is sent at once."""
    return replace(change, posts=(*change.posts, *replies(change, (text,))))


def replies(change: RecordMessage, texts: Sequence[str]) -> tuple[QueuedPost, ...]:
    """Return posts that answer the message."""
    message = change.message
    return tuple(
        new_post(
            post_id(message.id, f"reply{number or ''}"),
            change.conversation,
            PostKind.NOTICE,
            text,
            message.received_at,
            reply_to=message.message_to_reply_to,
        )
        for number, text in enumerate(texts)
    )
