"""Bots: the bots of one process, started, replaced and stopped as the fleet says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.contexts import FleetContext
from nightherd.errors import ChatRefusedError, NightherdError, message_of, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Refused
from nightherd.model.chat.bot import BotStatus, ChatBot, shown_error
from nightherd.model.chat.changes import SetBotState
from nightherd.model.chat.platform import BotId
from nightherd.model.chat.settings import BotSettings
from nightherd.model.jobs.retry import Backoff
from nightherd.model.log import LogLevel, LogLine

LOOK_S = 0.05
"""How often it is looked whether another process changed something, while a turn runs or something is to be sent."""
QUIET_S = 0.25
"""The same while nothing is going on."""
QUIET_AFTER_S = 2.0

OpenBot = Callable[[BotSettings, FleetContext, "Bots"], ChatContext]
"""Opens the connection of a bot; `NightherdError` when a package or a token is missing."""
RunBot = Callable[[ChatContext], Awaitable[None]]
"""Runs a bot until cancelled; `ChatRefusedError` when the platform refuses it for good."""


class _Running(msgspec.Struct, kw_only=True):
    """A bot at work."""

    settings: BotSettings
    credentials: tuple[str | None, ...]
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    context: ChatContext | None = None
    ended: anyio.Event = msgspec.field(default_factory=anyio.Event)


class Bots:
    """The bots of one process. Nothing that one of them meets ends another, or the process."""

    def __init__(
        self,
        fleet: Fleet,
        context: FleetContext,
        environment: Mapping[str, str],
        open_bot: OpenBot,
        run_bot: RunBot,
        *,
        ledger_end: Callable[[], int],
        report: Callable[[str], None],
    ) -> None:
        self._fleet = fleet
        self._context = context
        self._environment = environment
        self._open = open_bot
        self._run_bot = run_bot
        self._ledger_end = ledger_end
        self._report = report
        self._running: dict[BotId, _Running] = {}
        self._changed = anyio.Event()
        self._names: dict[BotId, str] = {}

    def adopt(self, fleet: Fleet, context: FleetContext, environment: Mapping[str, str]) -> None:
        """From now on the bots are those of this fleet. A bot whose settings stay keeps its connection."""
        self._fleet, self._context, self._environment = fleet, context, environment
        for one in self._running.values():
            if one.context is not None:
                one.context.fleet = context
                one.context.signals.set_all()
        self._changed.set()

    @property
    def fleet(self) -> Fleet:
        """The fleet as it is now."""
        return self._fleet

    @property
    def context(self) -> FleetContext:
        """The ports of the fleet as it is now."""
        return self._context

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that bots log in with, as they are now."""
        return self._environment

    def name(self, bot: BotId, name: str) -> None:
        """Take what a bot is called on its platform."""
        self._names[bot] = name

    def other_names(self, bot: BotId) -> frozenset[str]:
        """What the other bots on the same platform are called."""
        platform = bot.partition("/")[0]
        return frozenset(
            name
            for one, name in self._names.items()
            if one != bot and one.partition("/")[0] == platform
        )

    def running(self, bot: BotId) -> ChatContext | None:
        """Return the context of a bot that is at work here."""
        found = self._running.get(bot)
        return None if found is None else found.context

    async def run(self) -> None:
        """Keep the bots of the fleet at work until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch)
                while True:
                    self._changed = anyio.Event()
                    await self._replace(tasks)
                    await self._changed.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self._set_stopped()

    async def _replace(self, tasks: TaskGroup) -> None:
        """Stop those that are gone or changed, and start those that are not there."""
        wanted = {one.bot: one for agent in self._fleet.agents.values() for one in agent.bots}
        for bot, one in tuple(self._running.items()):
            if wanted.get(bot) != one.settings or one.credentials != self._credentials(
                one.settings
            ):
                one.scope.cancel()
                await one.ended.wait()
                del self._running[bot]
                if bot not in wanted:
                    await self._set(one.settings, BotStatus.STOPPED)
        for bot, settings in wanted.items():
            if bot not in self._running:
                running = _Running(settings=settings, credentials=self._credentials(settings))
                self._running[bot] = running
                tasks.start_soon(self._keep, running)

    def _credentials(self, settings: BotSettings) -> tuple[str | None, ...]:
        """What the bot logs in with: a changed token needs another connection, and so does a port that was opened."""
        door = "port" if self._fleet.opens_port else None
        return (*(self._environment.get(name) for name in settings.variables), door)

    async def _keep(self, one: _Running) -> None:
        """Run a bot until it is stopped; begin again when it fails, but not when it is refused."""
        backoff = Backoff()
        try:
            with one.scope:
                while True:
                    try:
                        context = self._open(one.settings, self._context, self)
                    except NightherdError as error:
                        await self._leave(one.settings, BotStatus.UNAVAILABLE, message_of(error))
                        return
                    one.context = context
                    try:
                        await self._run_bot(context)
                    except Exception as error:  # noqa: BLE001 (an edge: the other bots go on)
                        cause = unwrapped(error)
                        message = message_of(cause)
                        if isinstance(cause, ChatRefusedError):
                            await self._leave(one.settings, BotStatus.REFUSED, message)
                            return
                        pause_s, is_new = backoff.fail(message)
                        if is_new:
                            await self._leave(one.settings, BotStatus.DISCONNECTED, message)
                        await anyio.sleep(pause_s)
        finally:
            one.context = None
            one.ended.set()

    async def _leave(self, settings: BotSettings, status: BotStatus, message: str) -> None:
        """Say once why a bot does not run."""
        masked = str(self._context.secrets.mask(message))
        self._report(f"{settings.bot} is {status}: {masked}")
        now = self._context.clock.now()
        self._context.log.write(
            LogLine(
                at=now,
                level=LogLevel.WARNING,
                event=f"chat.{status}",
                agent=settings.agent,
                message=masked,
            )
        )
        await self._set(settings, status, masked)

    async def _set(
        self, settings: BotSettings, status: BotStatus, error: str | None = None
    ) -> None:
        bot = ChatBot(
            id=settings.bot,
            agent=settings.agent,
            platform=settings.platform,
            status=status,
            changed_at=self._context.clock.now(),
            error=shown_error(error),
        )
        try:
            await self._context.state.apply([SetBotState(bot=bot)])
        except NightherdError as failed:
            self._report(f"the state of {settings.bot} is not recorded: {message_of(failed)}")

    async def _set_stopped(self) -> None:
        """The process leaves: whoever reads the rows knows that no bot answers."""
        for one in self._running.values():
            known = next(
                (
                    bot
                    for bot in self._context.reader.list_chat_bots()
                    if bot.id == one.settings.bot
                ),
                None,
            )
            if known is not None and known.status not in (BotStatus.REFUSED, BotStatus.UNAVAILABLE):
                stopped = replace(
                    known,
                    status=BotStatus.STOPPED,
                    changed_at=self._context.clock.now(),
                    error=None,
                )
                try:
                    answers = await self._context.state.apply([SetBotState(bot=stopped)])
                except NightherdError:
                    return  # the state cannot be written any more; the daemon has said so
                assert not isinstance(answers[0], Refused)  # noqa: S101 (a bot's state is always taken)

    async def _watch(self) -> None:
        """Wake the bots when anything was changed: jobs that end, items that are answered, by whatever process."""
        last, quiet_for = self._ledger_end(), 0.0
        while True:
            pause = QUIET_S if quiet_for >= QUIET_AFTER_S else LOOK_S
            await anyio.sleep(pause)
            end = self._ledger_end()
            quiet_for = 0.0 if end != last else quiet_for + pause
            if end == last:
                continue
            last = end
            for one in self._running.values():
                if one.context is not None:
                    one.context.signals.set_all()
