"""The worker's ends of a command's pipes: chunks as they come, lines of any length, and nothing held up."""

from __future__ import annotations

import os
from collections import deque
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
        reader = LineReader(self)
        while (line := await reader.next()) is not None:
            yield line

    async def drain(self, take: Callable[[bytes], object]) -> None:
        """Give everything to `take` until the end: a bounded one keeps the command from filling the pipe."""
        while chunk := await self.receive():
            take(chunk)


class LineReader:
    """Reads lines one by one. A reading that is cancelled loses nothing: the next one goes on where it was."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ready: deque[bytes] = deque()
        self._parts: list[bytes] = []

    async def next(self) -> bytes | None:
        """The next line without its end, whatever its length; None when there is none any more."""
        while not self._ready:
            chunk = await self._source.receive()
            if not chunk:
                last, self._parts = b"".join(self._parts), []
                return last or None
            first, *others = chunk.split(b"\n")
            self._parts.append(first)
            for other in others:
                self._ready.append(b"".join(self._parts))
                self._parts = [other]
        return self._ready.popleft()


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
