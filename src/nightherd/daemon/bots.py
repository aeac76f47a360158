"""BotService: the bots of the fleet while one worker of the daemon is at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from nightherd.engine.contexts import WorkerContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.bot import BotStatus
from nightherd.model.chat.platform import BotId
from nightherd.model.inbox.item import ItemId
from nightherd.ports import StateReader
from nightherd.ports.chat import TakesRequests
from nightherd.wiring.chat import environment_of, make_bots

if TYPE_CHECKING:
    from nightherd.engine.chat.bots import Bots

LAST_WORDS_S = 5.0
"""How long a worker that leaves waits for what its last jobs said to be sent; the rest is sent after the next start."""
LOOK_S = 0.05


class BotService:
    """Runs bots as soon as the fleet has some. A fleet without any loads nothing of chat platforms."""

    def __init__(
        self,
        state_dir: Path,
        environ: Mapping[str, str],
        report: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._state_dir = state_dir
        self._environ = environ
        self._report = report
        self._wake = wake
        self._fleet: Fleet | None = None
        self._context: WorkerContext | None = None
        self._bots: Bots | None = None
        self._changed = anyio.Event()

    async def run(self, fleet: Fleet, context: WorkerContext) -> None:
        """Keep the bots of the fleet at work until cancelled."""
        if self._fleet is None:  # else it was adopted already
            self._fleet, self._context = fleet, context
        while not has_bots(self._fleet):
            await self._changed.wait()
            self._changed = anyio.Event()
        assert self._context is not None  # noqa: S101 (set with the fleet)
        self._bots = make_bots(
            self._state_dir, self._fleet, self._context, self._environ, self._report, self._wake
        )
        await self._bots.run()

    def adopt(self, fleet: Fleet, context: WorkerContext) -> None:
        """From now on the bots are those of this fleet."""
        self._fleet, self._context = fleet, context
        self._changed.set()
        if self._bots is not None:
            self._bots.adopt(fleet, context, environment_of(fleet, self._environ))

    def find_requests(self, bot: BotId) -> TakesRequests | None:
        """Return the connection of a bot that its platform reaches by requests, while the bot runs here."""
        context = None if self._bots is None else self._bots.running(bot)
        connection: object = None if context is None else context.connection
        return connection if isinstance(connection, TakesRequests) else None

    async def finish(self) -> None:
        """Wait until the answers of jobs that have ended are sent, but not for long."""
        with anyio.move_on_after(LAST_WORDS_S):
            while self._has_unsent():  # noqa: ASYNC110 (the outbox tells nobody)
                await anyio.sleep(LOOK_S)

    def _has_unsent(self) -> bool:
        """Whether a connected bot has something to say about jobs that have ended, or items that were answered."""
        if self._bots is None or self._context is None:
            return False
        reader = self._context.reader
        return any(
            reader.unsent_conversations(bot.id)
            or has_unfinished_turn(reader, bot.id)
            or has_answered_item(reader, running.asking)
            for bot in reader.list_chat_bots()
            if bot.status is BotStatus.CONNECTED
            and (running := self._bots.running(bot.id)) is not None
        )


def has_bots(fleet: Fleet) -> bool:
    """Whether people reach an agent of the fleet on a chat platform."""
    return any(agent.bots for agent in fleet.agents.values())


def has_unfinished_turn(reader: StateReader, bot: BotId) -> bool:
    """Whether a job of a turn has ended and its answer is not recorded yet."""
    for conversation in reader.answering_conversations(bot):
        job = (
            None if conversation.turn_job_id is None else reader.find_job(conversation.turn_job_id)
        )
        if job is not None and job.is_terminal:
            return True
    return False


def has_answered_item(reader: StateReader, asking: Iterable[ItemId]) -> bool:
    """Whether an item is shown with buttons though nobody is asked any more."""
    items = (reader.find_item(id) for id in asking)
    return any(item is None or not item.is_pending for item in items)
