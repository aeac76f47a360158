"""TurnFollowers: follows every turn of a bot, and shows people that it is at work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.outbox import Outbox
from nightherd.engine.chat.turn_follower import TurnFollower
from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.message import ChatMessage, ChatTurn
from nightherd.model.ids import JobId
from nightherd.model.log import LogLevel

TYPING_S = 8.0
"""How often it is shown that the bot writes: platforms show it for ten seconds."""
LONGEST_CALL_S = 5.0
"""How long the platform may take to show something that nobody has to see."""
RETRY_S = 30.0
"""How long until a turn is looked at again whose journal could not be read."""
MOST_ACKNOWLEDGED = 10
"""Messages that get a reaction: the last ones that a turn began with, and the first ones that it was told meanwhile."""


class TurnFollowers:
    """Follows the turns of one bot, each until its end."""

    def __init__(self, context: ChatContext, outbox: Outbox) -> None:
        self._context = context
        self._outbox = outbox
        self._followers: dict[JobId, TurnFollower] = {}

    async def run(self) -> None:
        """Follow every turn that runs, until cancelled."""
        context = self._context
        async with anyio.create_task_group() as tasks:
            while True:
                for follower in self._followers.values():
                    follower.changed.set()
                bot = context.settings.bot
                for conversation in context.fleet.reader.answering_conversations(bot):
                    self._begin(conversation, tasks)
                await context.signals.turns.wait()

    def _begin(self, conversation: Conversation, tasks: TaskGroup) -> None:
        job_id = conversation.turn_job_id
        turn = None if job_id is None else self._context.fleet.reader.find_chat_turn(job_id)
        if turn is None or not turn.is_open or turn.job_id in self._followers:
            return
        follower = TurnFollower(turn, conversation, self._context, self._outbox)
        self._followers[turn.job_id] = follower
        tasks.start_soon(self._follow, follower, turn, conversation)

    async def _follow(
        self, follower: TurnFollower, turn: ChatTurn, conversation: Conversation
    ) -> None:
        context = self._context
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._acknowledge, follower, turn, conversation)
                beside.start_soon(self._type, follower, conversation)
                is_over = await self._run(follower, conversation)
                beside.cancel_scope.cancel()
            if is_over:
                context.signals.messages.set()  # the conversation is free
                await self._react(self._acknowledged(turn), conversation, False)
        finally:
            del self._followers[follower.job_id]
        if not is_over:
            context.signals.turns.set()  # followed anew, from what is on record

    async def _run(self, follower: TurnFollower, conversation: Conversation) -> bool:
        """Follow a turn; False after a pause when that is not possible now. The other conversations go on."""
        try:
            await follower.run()
        except NightherdError as error:
            context = self._context
            message = str(context.fleet.secrets.mask(message_of(error)))
            write_log(
                context,
                "turn_unknown",
                f"it cannot be read what job {follower.job_id} says: {message}",
                level=LogLevel.WARNING,
                job=follower.job_id,
                conversation=conversation.id,
            )
            await anyio.sleep(RETRY_S)
            return False
        return True

    def _acknowledged(self, turn: ChatTurn) -> Sequence[ChatMessage]:
        """The messages of the turn that get a reaction, by what is on record: a restart changes nothing about it."""
        asked = self._context.fleet.reader.chat_messages_of_job(turn.job_id)
        names = [one.platform_message_id for one in asked]
        count = names.index(turn.reply_to) + 1 if turn.reply_to in names else len(asked)
        began, joined = asked[:count], asked[count:]
        return [*began[-MOST_ACKNOWLEDGED:], *joined[:MOST_ACKNOWLEDGED]]

    async def _acknowledge(
        self, follower: TurnFollower, turn: ChatTurn, conversation: Conversation
    ) -> None:
        """Show that messages are seen: those that the turn began with, then those that the agent is told meanwhile."""
        reader = self._context.fleet.reader
        shown = self._acknowledged(turn)
        await self._react(shown, conversation, True)
        known = {one.id for one in shown}
        while True:
            await follower.has_joined.wait()
            ids = [id for id in follower.joined[:MOST_ACKNOWLEDGED] if id not in known]
            known.update(ids)
            found = [one for id in ids if (one := reader.find_chat_message(id)) is not None]
            await self._react(found, conversation, True)

    async def _react(
        self,
        messages: Sequence[ChatMessage],
        conversation: Conversation,
        is_on: bool,
    ) -> None:
        """Show, or do not show any more, that the messages are seen. What the platform makes of it changes nothing."""
        emoji = self._context.settings.output.acknowledge_emoji
        if not emoji:
            return
        for message in messages:
            id = message.message_to_reply_to
            if id is not None:
                with suppress(NightherdError), anyio.move_on_after(LONGEST_CALL_S):
                    await self._context.connection.react(conversation.place, id, emoji, is_on=is_on)

    async def _type(self, follower: TurnFollower, conversation: Conversation) -> None:
        """Show that the bot writes, as long as its job runs."""
        if not self._context.settings.output.typing_indicator:
            return
        while True:
            await follower.is_running.wait()
            with suppress(NightherdError), anyio.move_on_after(LONGEST_CALL_S):
                await self._context.connection.typing(conversation.place)
            await anyio.sleep(TYPING_S)
