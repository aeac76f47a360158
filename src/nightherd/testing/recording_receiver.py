"""A `ChatReceiver` that remembers what it was given: for tests of connections to chat platforms."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from nightherd.errors import RefusedError
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingMessage
from nightherd.ports.chat import ConnectionState

PATIENCE_S = 60


class RecordingReceiver:
    """Takes everything. What it was given may be read at any time."""

    def __init__(self) -> None:
        self.messages: list[IncomingMessage] = []
        self.presses: list[ButtonPress] = []
        self.commands: list[ChatCommand] = []
        self.states: list[ConnectionState] = []
        self.press_answer: str | None = None
        self.command_answer = "done"
        self.fails = 0
        """How many of the next messages cannot be recorded."""
        self.gate: anyio.Event | None = None
        """Messages are recorded, and commands answered, once this is set."""
        self.begun = 0
        """Messages that it was given, whether they are recorded by now or not."""
        self._news = anyio.Event()

    async def message(self, message: IncomingMessage) -> None:
        """Record a message."""
        self.begun += 1
        self._tell()
        await self._pass_gate()
        if self.fails:
            self.fails -= 1
            raise RefusedError("the disk is full")
        self.messages.append(message)
        self._tell()

    async def press(self, press: ButtonPress) -> str | None:
        """Record a press."""
        self.presses.append(press)
        self._tell()
        return self.press_answer

    async def command(self, command: ChatCommand) -> str:
        """Record a command."""
        self.commands.append(command)
        self._tell()
        await self._pass_gate()
        return self.command_answer

    async def state(self, state: ConnectionState) -> None:
        """Record a state."""
        self.states.append(state)
        self._tell()

    @property
    def texts(self) -> list[str]:
        """What was said, in the order of recording."""
        return [message.text for message in self.messages]

    @property
    def is_connected(self) -> bool:
        """Whether the last state says so."""
        return bool(self.states) and self.states[-1].is_connected

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return once something that this was given makes it so."""
        with anyio.fail_after(PATIENCE_S):
            while not is_so():
                await self._news.wait()

    async def _pass_gate(self) -> None:
        if self.gate is not None:
            await self.gate.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
