"""The worker's ends of a command's pipes: chunks as they come, lines of any length, and nothing held up."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable

import anyio

CHUNK_BYTES = 64 * 1024


class _End:
    """This end of a pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._is_closed = False

    def close(self) -> None:
        """Let go; harmless the second time."""
        if not self._is_closed:
            self._is_closed = True
            os.close(self._descriptor)


class Source(_End):
    """What a command prints. One reader at a time; once it is closed, a command that prints on gets SIGPIPE."""

    async def receive(self, limit: int = CHUNK_BYTES) -> bytes:
        """The next bytes, at least one; empty when every process that could print has let go."""
        await anyio.lowlevel.checkpoint()
        while not self._is_closed:
            try:
                return os.read(self._descriptor, limit)
            except BlockingIOError:
                await anyio.wait_readable(self._descriptor)
        return b""

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Every line without its end, whatever its length; the last one also when it is not ended."""
        parts: list[bytes] = []
        while chunk := await self.receive():
            first, *others = chunk.split(b"\n")
            parts.append(first)
            for other in others:
                yield b"".join(parts)
                parts = [other]
        if last := b"".join(parts):
            yield last

    async def drain(self, take: Callable[[bytes], object]) -> None:
        """Give everything to `take` until the end: a bounded one keeps the command from filling the pipe."""
        while chunk := await self.receive():
            take(chunk)


class Sink(_End):
    """What a command reads. One writer at a time; once it is closed, the command finds the end of what was sent."""

    async def send(self, data: bytes) -> None:
        """All of `data` is in the pipe when it returns; `BrokenPipeError` when nobody reads any more."""
        await anyio.lowlevel.checkpoint()
        rest = memoryview(data)
        while rest:
            if self._is_closed:
                raise BrokenPipeError("this end has been closed")
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
