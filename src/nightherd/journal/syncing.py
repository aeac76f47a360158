"""Bringing journals to the disk without holding up the event loop: by a few threads of their own.

The disk takes its time over each, and serves many at once. Every job ends with one, so the way to a thread and
back is kept short: a queue, a future, and one call into the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from nightherd.ports import Journal

MOST = 32
"""Threads at work at once: more than that wait for one."""

Task = tuple[Callable[[], None], "asyncio.AbstractEventLoop", "asyncio.Future[None]"]


class SyncThreads:
    """Syncs the journals of one event loop. Threads start as they are needed and end at `close`."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._threads = 0
        self._under_way = 0

    async def sync(self, journal: Journal) -> None:
        """Return once everything appended to `journal` survives a power cut; raises what its `sync` does.

        Not to be cancelled: the journal must stay open until this has ended.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._under_way += 1
        self._queue.put((journal.sync, loop, future))
        if self._threads < min(self._under_way, self._most):
            self._threads += 1
            # A daemon: a process that ends without closing loses nothing acknowledged, and must end.
            threading.Thread(target=self._work, name="nightherd-sync", daemon=True).start()
        try:
            await future
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Let the threads end; harmless the second time."""
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            sync, loop, future = task
            error: BaseException | None = None
            try:
                sync()
            except BaseException as raised:  # noqa: BLE001 - raised where it is waited for
                error = raised
            with suppress(RuntimeError):  # nothing waits in a closed loop
                loop.call_soon_threadsafe(_settle, future, error)


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    """In the loop of the one who waits."""
    if future.done():
        return  # it was given up
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
