"""One bot on a platform in memory, with a real store: what tests of the engine of chat run in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from engine.bench import AGENT
from nightherd.engine.chat.context import ChatContext, ChatSignals
from nightherd.engine.contexts import FleetContext
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Applied, Change, RegisterWorker
from nightherd.model.chat.changes import StartTurn
from nightherd.model.chat.conversation import ConversationId, conversation_id
from nightherd.model.chat.message import ChatMessage
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import BotSettings, ChannelMode, ChannelSettings
from nightherd.model.ids import JobId, WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.secrets import find_secrets
from nightherd.ports import Clock, Probe, no_probe
from nightherd.state.directory import init_state_directory
from nightherd.state.layout import last_recorded
from nightherd.state.outbox import LedgerFeed
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.local_chat import BEGINNING, HERE, LocalConnection, LocalPlatform
from nightherd.testing.state_values import submit, worker
from nightherd.triggers.chat.incoming_files import PlacedFiles

BOT = bot_id(Platform.SLACK, AGENT.name)
WORKER = WorkerId("worker-00000001")
PATIENCE_S = 60
THERE = ChatPlace(channel_id="C2")
"""Another channel, which the bot listens in only when it is told to."""


def settings_of(**changes: Any) -> BotSettings:
    """A bot that hears everything in the channel C1."""
    fields: dict[str, Any] = {
        "bot": BOT,
        "platform": Platform.SLACK,
        "agent": AGENT.name,
        "channels": (ChannelSettings(id=HERE.channel_id, mode=ChannelMode.ALL),),
    }
    return BotSettings(**(fields | changes))


class ChatBench:
    """A bot's context, its platform, and its rows."""

    def __init__(
        self,
        root: Path,
        settings: BotSettings,
        platform: LocalPlatform,
        clock: Clock,
        probe: Probe,
        sender: str,
        agent: Agent,
        secret: str | None,
    ) -> None:
        self.root, self.platform, self.clock = root, platform, clock
        self.store, self.reader = SqliteStore(root, clock, no_probe), SqliteReader(root)
        self.connection: LocalConnection = platform.connect(settings.bot)
        fleet = FleetContext(
            state=self.store,
            reader=self.reader,
            journals=JournalFiles(root / "jobs", root / "blobs", clock=clock),
            clock=clock,
            secrets=find_secrets({} if secret is None else {"API_TOKEN": secret}),
            environment={},
            random_text=CountingText(),
            can_run=lambda name: True,
            agents={agent.name: agent},
        )
        self.context = ChatContext(
            fleet=fleet,
            settings=settings,
            connection=self.connection,
            signals=ChatSignals(),
            feed=LedgerFeed(root / "ledger"),
            ledger_end=lambda: last_recorded(root / "ledger"),
            is_at_work=lambda worker: True,
            sender=sender,
            directory=str(root / "chat"),
            incoming_files=PlacedFiles(),
            probe=probe,
        )

    @property
    def here(self) -> ConversationId:
        """The conversation of the channel C1."""
        return conversation_id(self.context.settings.bot, HERE)

    def messages(self, place: ChatPlace = HERE) -> list[ChatMessage]:
        """What was recorded of a place, in order."""
        id = conversation_id(self.context.settings.bot, place)
        return list(reversed(self.reader.list_chat_messages(id, 10_000)))

    def texts(self, place: ChatPlace = HERE) -> list[str]:
        """What those messages say."""
        found = [self.reader.find_chat_message_texts(one.id) for one in self.messages(place)]
        return [one.text for one in found if one is not None]

    async def apply(self, *changes: Change) -> None:
        """Change the state; every change has to be possible."""
        for answer in await self.store.apply(changes):
            assert isinstance(answer, Applied), answer

    async def start_turn(self, number: int = 1, *, runs: bool = False) -> JobId:
        """Give what waits in C1 to job `number`, which a worker has if it `runs`."""
        conversation = self.reader.find_conversation(self.here)
        assert conversation is not None
        waiting = self.reader.waiting_chat_messages(conversation.id, 1_000)
        change = StartTurn(
            conversation_id=conversation.id,
            messages=tuple(one.id for one in waiting),
            job=submit(number, agent=AGENT.name),
            at=self.clock.now(),
        )
        await self.apply(change)
        job = change.job.job.id
        if runs:
            if self.reader.find_worker(WORKER) is None:
                await self.apply(RegisterWorker(worker=worker(WORKER)))
            await self.apply(StartExecution(job_id=job, worker=WORKER, at=self.clock.now()))
        return job

    async def close(self) -> None:
        """Give everything back."""
        self.reader.close()
        await self.store.close()


@asynccontextmanager
async def chat_bench(
    folder: Path,
    settings: BotSettings | None = None,
    *,
    platform: LocalPlatform | None = None,
    clock: Clock | None = None,
    probe: Probe = no_probe,
    sender: str = "sender-1",
    agent: Agent = AGENT,
    secret: str | None = None,
) -> AsyncIterator[ChatBench]:
    """Open one on the state directory in `folder`; a second one there is the bot after a restart."""
    root = init_state_directory(folder / ".nightherd").root
    opened = ChatBench(
        root,
        settings or settings_of(),
        platform or LocalPlatform(),
        clock or FakeClock(BEGINNING - timedelta(hours=1)),
        probe,
        sender,
        agent,
        secret,
    )
    try:
        yield opened
    finally:
        await opened.close()


async def until(condition: Callable[[], object]) -> None:
    """Return once it is so; fails when it never comes."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (what is waited for knows nothing of who waits)
            await anyio.sleep(0.002)
