"""A whole bot: a platform in memory, a real store, a real worker with a scripted agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from engine.chat.chat_bench import BOT, PATIENCE_S, settings_of
from nightherd.engine.chat.bot import run_bot
from nightherd.engine.chat.bots import Bots
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.contexts import FleetContext, WorkerContext
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.chat.conversation import ConversationId, conversation_id
from nightherd.model.chat.message import ChatTurn
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import BotSettings
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job
from nightherd.ports.chat import ChatConnection, Transcriber
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.local_chat import HERE, LocalPlatform
from nightherd.wiring.chat import chat_context
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.stores import ledger_end

FLEET = """\
agents:
  - name: coder
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
"""
ECHO = """\
    script:
      - {repeat: 1000, steps: [{say: "turn ${turn}: ${prompt}"}, {end: true}]}
"""


def fleet_in(folder: Path, script: str = ECHO, settings: BotSettings | None = None) -> Fleet:
    """A fleet of one scripted agent, `coder`, with a bot."""
    file = folder / "nightherd.yaml"
    file.write_text(FLEET + script)
    fleet = load_fleet(file, environ={}, cwd=folder).fleet
    agent = replace(fleet.agents["coder"], bots=(settings or settings_of(),))
    return replace(fleet, agents={"coder": agent}, mirror=False)


class LiveBot:
    """A bot at work, and what can be seen of it."""

    def __init__(self, folder: Path, fleet: Fleet, platform: LocalPlatform) -> None:
        self.folder, self.fleet, self.platform = folder, fleet, platform
        self.state_dir = folder / ".nightherd"
        self.settings = fleet.agents["coder"].bots[0]
        self.context: WorkerContext
        self.worker: WorkerLoop
        self.bots: Bots
        self.transcriber: Transcriber | None = None
        self.session_id: SessionId | None = None
        self.connections: list[ChatConnection] = []
        self.reported: list[str] = []

    def use(self, agent: Agent) -> None:
        """Have the fleet's agent be this one; before anything is at work."""
        self.fleet = replace(self.fleet, agents={agent.name: agent})
        self.context = replace(self.context, agents=self.fleet.agents)

    @property
    def here(self) -> ConversationId:
        """The conversation of the channel C1."""
        return conversation_id(BOT, HERE)

    def turns(self, place: ChatPlace = HERE) -> list[ChatTurn]:
        """The turns of a place, the first one first."""
        found = self.context.reader.list_chat_turns(conversation_id(BOT, place), 100)
        return list(reversed(found))

    def job(self, number: int = 0) -> Job:
        """The job of a turn."""
        job = self.context.reader.find_job(self.turns()[number].job_id)
        assert job is not None
        return job

    def prompt(self, number: int = 0) -> str:
        """What the job of a turn is asked."""
        texts = self.context.reader.find_texts(self.turns()[number].job_id)
        assert texts is not None
        return texts.prompt

    def texts(self, place: ChatPlace = HERE) -> list[str]:
        """What the bot has posted, oldest first."""
        return [one.text for one in self.platform.posted(place)]

    def posted(self) -> Sequence[Posted]:
        """The bot's posts, oldest first."""
        return self.platform.posted()

    def is_quiet(self) -> bool:
        """Whether nothing runs, nothing waits and everything is sent."""
        reader = self.context.reader
        return not (
            reader.waiting_conversations(BOT)
            or reader.answering_conversations(BOT)
            or reader.unsent_conversations(BOT)
        )

    async def answered(self, count: int = 1, place: ChatPlace = HERE) -> list[str]:
        """Wait until so many turns are over and everything is said; returns what the bot has posted."""
        await until(lambda: len(self.turns(place)) >= count and self.is_quiet())
        return self.texts(place)

    @asynccontextmanager
    async def bot(self) -> AsyncIterator[None]:
        """Run the bot meanwhile; it is cancelled at the end."""
        bots = self.bots = Bots(
            self.fleet,
            self.context,
            {},
            self._open,
            run_bot,
            ledger_end=partial(ledger_end, self.state_dir),
            report=self.reported.append,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bots.run)
            await until(lambda: self._is_connected(bots))
            yield
            tasks.cancel_scope.cancel()

    def _is_connected(self, bots: Bots) -> bool:
        return (
            any(one.status.value == "connected" for one in self.context.reader.list_chat_bots())
            and bots.running(BOT) is not None
        )

    def _open(self, settings: BotSettings, fleet: FleetContext, bots: Bots) -> ChatContext:
        connection = self.platform.connect(settings.bot)
        self.connections.append(connection)
        context = chat_context(self.state_dir, settings, fleet, connection, {})
        context.wake_jobs = self.worker.wake
        context.transcriber, context.session_id = self.transcriber, self.session_id
        return context

    def make_worker(self) -> WorkerLoop:
        """A worker that does nothing yet."""
        return make_worker_loop(self.fleet, self.context, _silent(), leaves_when_idle=False)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Have a worker at work meanwhile."""
        self.worker = self.make_worker()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.worker.work)
            yield
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def opened(
    folder: Path,
    script: str = ECHO,
    settings: BotSettings | None = None,
    platform: LocalPlatform | None = None,
) -> AsyncIterator[LiveBot]:
    """Open the state; nothing is at work yet."""
    live = LiveBot(folder, fleet_in(folder, script, settings), platform or LocalPlatform())
    async with open_worker(live.state_dir, live.fleet, {}) as context:
        live.context = context
        yield live


@asynccontextmanager
async def live_bot(
    folder: Path,
    script: str = ECHO,
    settings: BotSettings | None = None,
    platform: LocalPlatform | None = None,
) -> AsyncIterator[LiveBot]:
    """A bot and a worker, at work until the end."""
    async with opened(folder, script, settings, platform) as live, live.at_work(), live.bot():
        yield live


async def until(condition: Callable[[], object]) -> None:
    """Return once it is so; fails when it never comes."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (what is waited for knows nothing of who waits)
            await anyio.sleep(0.01)


def _silent() -> WorkerReports:
    def nothing(*_: Any) -> None:
        """Nobody watches."""

    return WorkerReports(
        on_start=nothing, on_event=nothing, on_end=nothing, on_rescue=nothing, on_trouble=nothing
    )
