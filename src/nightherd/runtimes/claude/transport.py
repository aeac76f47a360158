"""How the SDK reaches its `claude`: a process under our keeper, instead of one of its own.

What the two say to each other to get along (control requests and answers, copies of the transcript) is the
SDK's. The conversation itself is ours, message by message as it is, so that both runtimes record the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import anyio
from claude_agent_sdk import CLIConnectionError, Transport

from nightherd.runtimes.claude.gate import Gate
from nightherd.runtimes.claude.process import ClaudeProcess, Duty, parsed

PROTOCOL = frozenset(
    {"control_request", "control_response", "control_cancel_request", "transcript_mirror"}
)
"""Types of messages that are for the SDK."""
WAITING = 1_000
"""Messages that may wait to be recorded before `claude` has to wait."""


class KeptTransport(Transport):
    """One process; `heard` is what it says to us. It gets no more input once it owes nothing more."""

    def __init__(self, process: ClaudeProcess, gate: Gate, *, end_s: float) -> None:
        self._process = process
        self._gate = gate
        self._end_s = end_s
        self._put, self._get = anyio.create_memory_object_stream[bytes | Mapping[str, Any]](WAITING)
        self._duty = Duty()
        self._is_deaf = False
        self._has_ended = False
        self.on_end: Callable[[], object] = lambda: None
        """Called when it has let go of its output."""
        self.owes_nothing = anyio.Event()
        self.last_result: Mapping[str, Any] | None = None
        """The last it gave, also after the run stopped listening."""

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Everything it says that is not for the SDK, until it has let go of its output."""
        async for message in self._get:
            yield message

    def stop_listening(self) -> None:
        """Discard further output, so that the process does not block on it."""
        self._is_deaf = True
        self._get.close()

    async def connect(self) -> None:
        """Start the process; `CLIConnectionError` when it cannot be."""
        await self._process.start()
        if not self._process.has_started:
            raise CLIConnectionError(self._process.failure.message)

    async def write(self, data: str) -> None:
        """The process reads `data` next."""
        try:
            await self._process.write(data.encode())
        except BrokenPipeError as error:
            raise CLIConnectionError(f"claude is not listening: {error}") from error

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it says to the SDK."""
        return self._read()

    async def end_input(self) -> None:
        """Close its input."""
        await self._process.end_input()

    def is_ready(self) -> bool:
        """Whether it can be talked to."""
        return self._process.has_started and not self._has_ended

    async def close(self) -> None:
        """The process, which has a moment to end by itself, has ended with everything it started."""
        await self._process.end_input()
        with anyio.move_on_after(self._end_s):
            async with aclosing(self._process.lines()) as rest:
                async for _ in rest:
                    pass
        await self._process.close()
        self._put.close()

    async def _read(self) -> AsyncGenerator[dict[str, Any], None]:
        try:
            async with aclosing(self._process.lines()) as lines:
                async for line in lines:
                    message = parsed(line)
                    if isinstance(message, dict):
                        unannounced = self._gate.read(message)
                        if unannounced is not None:
                            await self._hand_over(unannounced)
                    if isinstance(message, dict) and message.get("type") in PROTOCOL:
                        yield message
                    else:
                        await self._hand_over(message)
        finally:
            self._put.close()
            self._has_ended = True
            self.owes_nothing.set()
            self.on_end()

    async def _hand_over(self, message: bytes | Mapping[str, Any]) -> None:
        if not self._is_deaf:
            try:
                await self._put.send(message)
            except anyio.BrokenResourceError:  # the run has stopped listening
                self._is_deaf = True
        if isinstance(message, Mapping):
            if message.get("type") == "result":
                self.last_result = message
            self._duty.see(message)
            if self._duty.is_done:
                self.owes_nothing.set()
                await self._process.end_input()
