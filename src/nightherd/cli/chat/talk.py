"""Talk: one conversation with an agent, opened: what the person says goes in, and what became of it comes out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from nightherd.cli.chat.turn_runner import TurnRunner
from nightherd.config.acceptance import ensure_recorded
from nightherd.engine.contexts import WorkerContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.conversation import Conversation, ConversationId, conversation_id
from nightherd.model.chat.message import ChatMessage, TurnStatus, chat_message_id
from nightherd.model.chat.post import PostKind, PostStatus, post_id
from nightherd.model.chat.terminal import terminal_place
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.ports.chat import Button
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.running import open_worker, rescuer
from nightherd.wiring.terminal_chat import (
    OpenTerminal,
    TerminalConnection,
    TerminalView,
    open_terminal,
)

LOOK_S = 0.03
SHOWN_S = 2.0
"""How long a turn that waits for a person may take to show what it asks."""
PRESS = re.compile(r"/(?P<number>[1-9])(?:\s+(?P<comment>\S.*))?\s*", re.DOTALL)
"""How a button is pressed: its number, and what the person wants to say."""


class End(StrEnum):
    """How far a message came."""

    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    """The turn waits, for a person or for a time."""
    COMMAND = "command"
    """It was no message to the agent."""


ENDS = {
    TurnStatus.ANSWERED: End.ANSWERED,
    TurnStatus.FAILED: End.FAILED,
    TurnStatus.CANCELLED: End.CANCELLED,
}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message."""

    end: End
    texts: Sequence[str] = ()
    """What was said to it: the answer, or what a command replied."""
    errors: Sequence[str] = ()
    job: Job | None = None
    note: str | None = None
    """What is said to this person alone: nobody has seen it yet."""


class Talk:
    """An open conversation."""

    def __init__(
        self,
        terminal: OpenTerminal,
        connection: TerminalConnection,
        context: WorkerContext,
        state_dir: Path,
    ) -> None:
        self._bot = terminal.settings.bot
        self._channel = terminal.channel
        self._connection = connection
        self._context = context
        self._state_dir = state_dir
        self.id: ConversationId = conversation_id(self._bot, terminal_place(terminal.channel))

    @property
    def session_id(self) -> SessionId | None:
        """The agent's session of the latest turn."""
        conversation = self._conversation()
        return None if conversation is None else conversation.session_id

    def mask(self, text: str) -> str:
        """Return the text without secrets."""
        return str(self._context.secrets.mask(text))

    async def say(self, text: str) -> Said:
        """Say something, and wait until it is answered, or waits for a person."""
        press = PRESS.fullmatch(text.strip())
        if press is not None:
            return await self._press(int(press["number"]), press["comment"])
        message_id = await self._connection.say(text)
        id = chat_message_id(self._bot, self._channel, message_id)
        while True:
            message = self._context.reader.find_chat_message(id)
            said = None if message is None else await self._became(message)
            if said is not None:
                return said
            await anyio.sleep(LOOK_S)

    async def settled(self) -> Said | None:
        """Wait for the turn that runs, if one does; what became of it."""
        conversation = self._conversation()
        job_id = None if conversation is None else conversation.turn_job_id
        while job_id is not None:
            said = await self._of_turn(job_id)
            if said is not None:
                return said
            await anyio.sleep(LOOK_S)
        while self._is_unsent():  # noqa: ASYNC110 (the outbox tells nobody)
            await anyio.sleep(LOOK_S)
        return None

    async def stop(self) -> str:
        """Cancel the turn that runs; what there is to say about it."""
        return await self._connection.command("stop")

    async def _became(self, message: ChatMessage) -> Said | None:
        if message.job_id is not None:
            return await self._of_turn(message.job_id)
        if message.is_waiting:
            conversation = self._conversation()
            ahead = None if conversation is None else conversation.turn_job_id
            if ahead is None or not self._waits(self._job(ahead)):
                return None
            return Said(end=End.WAITING, job=self._job(ahead))  # it is answered after that one
        if self._is_unsent():
            return None
        texts = self._context.reader.find_post_texts(post_id(message.id, "reply"))
        return Said(end=End.COMMAND, texts=() if texts is None else (texts.text,))

    async def _of_turn(self, job_id: JobId) -> Said | None:
        """What came of a turn; None as long as it runs, or something of it is to be shown."""
        turn, job = self._context.reader.find_chat_turn(job_id), self._job(job_id)
        if turn is None:
            return None
        if turn.is_open:
            if not self._waits(job) or not await self._is_shown(job_id):
                return None
            return Said(end=End.WAITING, job=job)
        if self._is_unsent():
            return None
        kinds = self._texts(job_id)
        return Said(
            end=ENDS[turn.status],
            texts=kinds.get(PostKind.ANSWER, ()),
            errors=kinds.get(PostKind.ERROR, ()),
            job=job,
        )

    def _texts(self, job_id: JobId) -> Mapping[PostKind, Sequence[str]]:
        """What was posted in a turn, by kind."""
        reader, kinds = self._context.reader, dict[PostKind, list[str]]()
        for post in reader.posts_of_job(job_id):
            texts = reader.find_post_texts(post.id)
            if texts is not None and texts.text and post.status is not PostStatus.DROPPED:
                kinds.setdefault(post.kind, []).append(texts.text)
        return kinds

    async def _is_shown(self, job_id: JobId) -> bool:
        """Whether a turn that waits has shown what it asks; it has, when it takes too long to."""
        with anyio.move_on_after(SHOWN_S):
            while self._waits(self._job(job_id)):
                if not self._is_unsent() and self._connection.latest_buttons() is not None:
                    return True
                await anyio.sleep(LOOK_S)
            return False
        return True

    async def _press(self, number: int, comment: str | None) -> Said:
        latest = self._connection.latest_buttons()
        if latest is None:
            return Said(end=End.COMMAND, note="Nothing waits for an answer here.")
        message_id, buttons = latest
        if number > len(buttons):
            return Said(end=End.COMMAND, note=f"There is no /{number} here.")
        refuse_agents(self._state_dir, "answering the inbox")
        said = await self._connection.press(message_id, buttons[number - 1].id, comment)
        await self._resumed()
        after = await self.settled()
        return Said(end=End.COMMAND, note=said) if after is None else replace(after, note=said)

    async def _resumed(self) -> None:
        """Wait a moment until an answer counts."""
        conversation = self._conversation()
        job_id = None if conversation is None else conversation.turn_job_id
        with anyio.move_on_after(SHOWN_S):
            while job_id is not None and self._waits(self._job(job_id)):  # noqa: ASYNC110 (as above)
                await anyio.sleep(LOOK_S)

    def latest_buttons(self) -> Sequence[Button]:
        """The buttons that can be pressed now."""
        latest = self._connection.latest_buttons()
        return () if latest is None else latest[1]

    def _waits(self, job: Job | None) -> bool:
        return job is not None and job.status is JobStatus.SUSPENDED

    def _job(self, id: JobId) -> Job | None:
        return self._context.reader.find_job(id)

    def _conversation(self) -> Conversation | None:
        return self._context.reader.find_conversation(self.id)

    def _is_unsent(self) -> bool:
        return self.id in self._context.reader.unsent_conversations(self._bot)


@asynccontextmanager
async def open_talk(
    terminal: OpenTerminal,
    state_dir: Path,
    fleet: Fleet,
    environ: Mapping[str, str],
    view: TerminalView,
    report: Callable[[str], None],
) -> AsyncIterator[Talk]:
    """Open the conversation. What runs here when it is closed is given back, and continues elsewhere."""
    async with open_worker(state_dir, fleet, environ) as context:
        ensure_recorded(fleet, state_dir, context.clock.now())
        connection, bots = open_terminal(terminal, state_dir, view, fleet, context, report)
        talk = Talk(terminal, connection, context, state_dir)
        runner = TurnRunner(
            state_dir,
            terminal.settings.agent,
            talk.id,
            context,
            rescuer(context, fleet),
            report,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bots.run)
            tasks.start_soon(runner.run)
            try:
                yield talk
            finally:
                with anyio.CancelScope(shield=True):
                    await runner.leave()
                tasks.cancel_scope.cancel()
