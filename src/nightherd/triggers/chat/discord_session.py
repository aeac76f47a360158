"""DiscordSession: one client of discord.py from its login to its end, and what it hands on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from functools import partial

import anyio
import discord
import msgspec
from anyio.abc import TaskGroup

from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.settings import BotSettings
from nightherd.ports.chat import ChatReceiver, ConnectionState
from nightherd.triggers.chat.discord_answers import Answers
from nightherd.triggers.chat.discord_client import DiscordClient, open_connector
from nightherd.triggers.chat.discord_commands import register_commands
from nightherd.triggers.chat.discord_errors import FAILURES, UNREADABLE, reason, refusal
from nightherd.triggers.chat.discord_incoming import Incoming
from nightherd.triggers.chat.discord_queues import ChannelQueues
from nightherd.triggers.chat.discord_reading import Reading, channels_of_servers
from nightherd.triggers.chat.discord_sending import Sending

MOST_LOSSES = 5
WITHIN_S = 60.0
"""A connection that is lost so often in this time is begun anew, after a pause: discord.py makes none."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a session waits for Discord."""

    connect_s: float = 90.0
    """For being connected, or connected again: after that it ends."""
    servers_s: float = 2.0
    """For what the servers are that the bot is in, before it is connected."""
    heartbeat_s: float = 60.0
    """For anything at all."""
    identify_s: float = 5.0
    """Before a new session of the same login: Discord asks for that."""
    close_s: float = 5.0
    """For a proper end."""
    record_pauses_s: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """Between tries to record a message. After the last one a fresh connect fetches everything again."""


class SessionEndedError(NightherdError):
    """The session is over; another one may be begun."""


class _Event(Enum):
    READY = auto()
    RESUMED = auto()
    LOST = auto()
    CHANGED = auto()
    """Something else about a connection that stands."""


class DiscordSession:
    """One login. A `ClientEvents`: what discord.py says comes in here, in order, and waits in queues."""

    def __init__(
        self,
        settings: BotSettings,
        environment: Mapping[str, str],
        receiver: ChatReceiver,
        incoming: Incoming,
        sending: Sending,
        reading: Reading,
        timing: Timing,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._receiver = receiver
        self._incoming = incoming
        self._sending = sending
        self._reading = reading
        self._timing = timing
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._servers_known = anyio.Event()
        self._may_hand_on = anyio.Event()
        """Set once the receiver knows that a session is fresh: what is said is handed on after that only."""
        self._problem: str | None = None
        self._error: NightherdError | None = None
        self._tasks: TaskGroup | None = None
        self._queues: ChannelQueues | None = None

    async def run(self) -> None:
        """Log in and hand on what happens. `ChatRefusedError` or `SessionEndedError` at the end."""
        close_s = self._timing.close_s
        async with open_connector(self._environment, close_s) as connector:
            self._client = client = DiscordClient(
                self,
                connector,
                self._settings.presence,
                heartbeat_timeout_s=self._timing.heartbeat_s,
                identify_pause_s=self._timing.identify_s,
            )
            self._sending.on_failure = self._note_refusal
            try:
                await self._work()
            finally:
                self._tasks = self._queues = None
                self._sending.client = None
                with anyio.move_on_after(close_s, shield=True):
                    await client.close()
        raise self._error or SessionEndedError("Discord: the connection ended")

    # What discord.py says: nothing here waits

    def ready(self) -> None:
        """A new session began."""
        self._may_hand_on = anyio.Event()
        self._servers_known = anyio.Event()
        self.guilds_changed()
        self._events.put_nowait(_Event.READY)

    def guilds_changed(self) -> None:
        """More is known about the servers that the bot is in."""
        if not any(guild.unavailable for guild in self._client.guilds):
            self._servers_known.set()

    def resumed(self) -> None:
        """The last session goes on."""
        self._events.put_nowait(_Event.RESUMED)

    def lost(self) -> None:
        """The connection is gone."""
        self._events.put_nowait(_Event.LOST)

    def message(self, message: discord.Message) -> None:
        """Somebody wrote something."""
        me = self._client.user
        if me is not None and message.author.id == me.id:
            self._sending.see(message)
        elif self._queues is not None and not message.author.bot:
            self._queues.put(message.channel.id, partial(self._take, message))

    def interaction(self, interaction: discord.Interaction) -> None:
        """Somebody used the bot."""
        if self._tasks is not None:
            self._tasks.start_soon(self._answers.take, interaction)

    # The work

    async def _work(self) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks, self._queues = tasks, ChannelQueues(tasks)
            self._answers = Answers(self._receiver, self._incoming, self._queues)
            tasks.start_soon(self._connect)
            tasks.start_soon(self._report)

    async def _connect(self) -> None:
        token = self._environment.get(self._settings.token_env, "")
        problem: BaseException | None = None
        try:
            await self._client.login(token)
            self._sending.client = self._client
            if self._tasks is not None:
                self._tasks.start_soon(self._register)
            await self._client.connect()
        except FAILURES as error:
            problem = error
        except UNREADABLE as error:
            # Without a websocket it is how discord.py says that its first connection was not made.
            problem = OSError() if getattr(self._client, "ws", None) is None else error
        why = "Discord: the connection ended" if problem is None else reason(problem)
        refused = None if problem is None else refusal(problem, self._settings.token_env)
        self._end(refused or SessionEndedError(why))

    async def _register(self) -> None:
        try:
            await register_commands(self._client, self._settings)
        except FAILURES as error:
            self._note_refusal(error)
            why = reason(error)
        except ValueError:
            why = f"{self._settings.command_guild_id!r} is no id of a server"
        else:
            return
        self._problem = f"slash commands cannot be registered: {why}"
        self._events.put_nowait(_Event.CHANGED)

    async def _report(self) -> None:
        """Tell the receiver how the connection is doing, and end it when it is not doing well for long."""
        is_connected = False
        losses: deque[float] = deque(maxlen=MOST_LOSSES)
        while True:
            event: _Event | None = None
            with anyio.move_on_after(None if is_connected else self._timing.connect_s):
                event = await self._events.get()
            match event:
                case None:
                    self._end(SessionEndedError("Discord's gateway cannot be reached"))
                    return
                case _Event.READY:
                    with anyio.move_on_after(self._timing.servers_s):
                        await self._servers_known.wait()
                    is_connected = True
                    await self._receiver.state(self._state(is_fresh=True))
                    self._may_hand_on.set()
                case _Event.RESUMED:
                    is_connected = True
                    await self._receiver.state(self._state())
                case _Event.CHANGED if is_connected:
                    await self._receiver.state(self._state())
                case _Event.LOST:
                    if is_connected:
                        is_connected = False
                        why = "the connection was lost"
                        await self._receiver.state(ConnectionState(is_connected=False, error=why))
                    losses.append(anyio.current_time())
                    if len(losses) == MOST_LOSSES and losses[-1] - losses[0] < WITHIN_S:
                        self._end(SessionEndedError("the connection is lost again and again"))
                        return
                case _:
                    pass

    def _state(self, *, is_fresh: bool = False) -> ConnectionState:
        me = self._client.user
        return ConnectionState(
            is_connected=True,
            error=self._problem,
            bot_name=None if me is None else me.name,
            is_fresh=is_fresh,
            places=channels_of_servers(self._client, self._settings) if is_fresh else (),
        )

    async def _take(self, message: discord.Message) -> None:
        """Hand on a message, and do not go on in its channel before it is recorded."""
        facts = await self._reading.facts(message.channel)
        me = self._client.user
        incoming = None if me is None else self._incoming.message(message, facts, me)
        if incoming is None:
            return
        problem: NightherdError | None = None
        for pause_s in (0.0, *self._timing.record_pauses_s):
            await anyio.sleep(pause_s)
            await self._may_hand_on.wait()
            try:
                await self._receiver.message(incoming)
            except NightherdError as error:
                problem = error
            else:
                return
        if problem is not None:
            self._end(SessionEndedError(f"messages cannot be recorded: {message_of(problem)}"))

    def _note_refusal(self, error: BaseException) -> None:
        """End the session if a request shows that the token is worth nothing any more."""
        refused = refusal(error, self._settings.token_env)
        if refused is not None:
            self._end(refused)

    def _end(self, error: NightherdError) -> None:
        self._error = self._error or error
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
