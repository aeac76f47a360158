"""BotReceiver: takes what comes in from the connection of one bot. What it has taken is durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from nightherd.engine.chat.catch_up import CatchUp
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.quiet_sessions import end_quiet_sessions
from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.bot import BotStatus, ChatBot, shown_error
from nightherd.model.chat.changes import SetBotState
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingMessage
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import LogLevel as Detail
from nightherd.model.log import LogLevel
from nightherd.ports.chat import ConnectionState

CURSOR_S = 2.0
"""How often cursors are written of places in which nothing is said to the bot."""
QUIET_S = 600.0
"""How often sessions are ended in which people said nothing for too long."""

Press = Callable[[ChatContext, ButtonPress], Awaitable[str | None]]
"""Carries out a press of a button; returns what to say to that person alone."""


class BotReceiver:
    """A `ports.chat.ChatReceiver`."""

    def __init__(self, context: ChatContext, press: Press) -> None:
        self._context = context
        self._press = press
        self._intake = Intake(context)
        self._catch_up = CatchUp(context, self._intake)
        self._is_connected: bool | None = None
        self._error: str | None = None

    async def run(self) -> None:
        """Fetch what was missed after each fresh connect, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._catch_up.run)
                tasks.start_soon(self._end_quiet_sessions)
                while True:
                    await anyio.sleep(CURSOR_S)
                    await self._intake.write_cursors()
        finally:
            with anyio.CancelScope(shield=True):
                await self._intake.write_cursors()

    async def _end_quiet_sessions(self) -> None:
        while True:
            await end_quiet_sessions(self._context)
            await anyio.sleep(QUIET_S)

    async def message(self, message: IncomingMessage) -> None:
        """Take a message."""
        async with self._catch_up.in_order(message.place) as moves_cursor:
            await self._intake.take(message, moves_cursor=moves_cursor)

    async def press(self, press: ButtonPress) -> str | None:
        """Take a press of a button."""
        try:
            return await self._press(self._context, press)
        except NightherdError as error:
            return f"That failed: {message_of(error)}"

    async def command(self, command: ChatCommand) -> str:
        """Carry out a command."""
        async with self._catch_up.turn_at(command.place):
            try:
                return await self._intake.command(command)
            except NightherdError as error:
                return f"That failed: {message_of(error)}"

    async def state(self, state: ConnectionState) -> None:
        """Take how the connection is doing."""
        context = self._context
        if state.bot_name is not None:
            context.named(state.bot_name)
        error = None if state.error is None else str(context.fleet.secrets.mask(state.error))
        if state.is_fresh:
            self._catch_up.known = state.places
        is_news = state.is_connected != self._is_connected or error != self._error
        self._is_connected, self._error = state.is_connected, error
        if is_news or state.is_fresh:
            await self._record(state, error)
        if is_news:
            self._log(state, error)
        if state.is_connected and state.is_fresh:
            self._catch_up.begin()

    async def _record(self, state: ConnectionState, error: str | None) -> None:
        """Write the bot's row, and rows of channels that are listed and were never looked at.

        A terminal is there as long as its person is: a row of it would be left behind for ever.
        """
        context = self._context
        if context.settings.platform is Platform.TERMINAL:
            return
        now = context.fleet.clock.now()
        settings = context.settings
        connected_at = now if state.is_connected else None
        bot = ChatBot(
            id=settings.bot,
            agent=settings.agent,
            platform=settings.platform,
            status=BotStatus.CONNECTED if state.is_connected else BotStatus.DISCONNECTED,
            changed_at=now,
            name=state.bot_name,
            error=shown_error(error),
            connected_at=connected_at,
            first_connected_at=connected_at,
        )
        listed = self._catch_up.listed() if state.is_connected and state.is_fresh else []
        await context.fleet.state.apply([*listed, SetBotState(bot=bot)])

    def _log(self, state: ConnectionState, error: str | None) -> None:
        if state.is_connected:
            write_log(self._context, "connected", detail=Detail.STANDARD, name=state.bot_name)
        else:
            write_log(self._context, "disconnected", error, level=LogLevel.WARNING)
