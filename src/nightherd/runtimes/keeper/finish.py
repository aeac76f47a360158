"""A command seen to its end: told what it is to read, heard, and stopped when its time is up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import anyio

from nightherd.runtimes.keeper.attendant import Ending
from nightherd.runtimes.keeper.process import KeptProcess

DRAIN_S = 0.5
"""How long output may still come once the command has ended; a process it left behind may hold the pipe open."""


async def finish(
    process: KeptProcess,
    take: Callable[[bytes], object],
    allowed: timedelta,
    *,
    body: bytes = b"",
    is_alone: bool = False,
) -> Ending | None:
    """How the command ended, or None when it was stopped because its time was up.

    What it prints is given to `take`, and `body` is what it reads. With `is_alone`, what it left in the
    background ends with it.
    """
    ending: Ending | None = None
    closed = anyio.Event()

    async def write() -> None:
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # a command need not read what it is told
                await process.stdin.send(body)
            process.stdin.close()

    async def read() -> None:
        if process.stdout is not None:
            await process.stdout.drain(take)
        closed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(read)
        with anyio.move_on_after(allowed.total_seconds()):
            ending = await process.wait()
        if ending is None or is_alone:
            await process.stop()
        with anyio.move_on_after(DRAIN_S):
            await closed.wait()
        tasks.cancel_scope.cancel()
    return ending
