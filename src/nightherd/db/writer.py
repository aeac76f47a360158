"""The writer: one thread per process that carries out changes in groups.

Callers hand in batches and wait; the thread drains what has come, takes `write.lock` once, commits once,
and wakes everybody. Nothing waits inside a transaction but the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

import msgspec

from nightherd.db.group import Outcome
from nightherd.db.lock import WriteLock
from nightherd.model.change import Answer, Change

GROUP_LIMIT = 512
"""Changes in one transaction, so that a flood does not make its first caller wait for its last."""

Run = Callable[[Sequence[Sequence[Change]]], list[list[Outcome]]]
"""Commits one group of batches (`GroupCommit.run`)."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller handed in, and where it waits: `future` belongs to `loop` and is settled there."""

    changes: Sequence[Change]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Answer]]


class Writer:
    """A thread that owns one database. It starts at the first `submit` and ends at `close`.

    `open_run` opens the database and gives the function that commits groups; it is called inside the
    thread, under the lock, again after a failure. `close_database` is called in the thread at the end.
    """

    def __init__(
        self,
        lock: WriteLock,
        open_run: Callable[[], Run],
        close_database: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._open_run = open_run
        self._close_database = close_database
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, changes: Sequence[Change]) -> asyncio.Future[list[Answer]]:
        """Hand in a batch. The future gives the answers once they are committed, or raises what went wrong.

        It belongs to the running event loop. Cancelling it before its group begins leaves everything undone;
        later it changes nothing.
        """
        loop = asyncio.get_running_loop()
        batch = Batch(changes=changes, loop=loop, future=loop.create_future())
        with self._starting:
            if self._is_closed:
                raise RuntimeError("the writer is closed")
            if self._thread is None:
                # A daemon: a process that ends without closing loses nothing acknowledged, and must end.
                self._thread = threading.Thread(
                    target=self._work, name="nightherd-writer", daemon=True
                )
                self._thread.start()
            self._queue.put(batch)
        return batch.future

    def close(self) -> None:
        """Finish what was handed in, close the database, end the thread."""
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        self._lock.close()

    def _work(self) -> None:
        run: Run | None = None
        is_open = True
        while is_open:
            group, is_open = self._drain()
            group = [batch for batch in group if not batch.future.cancelled()]
            if not group:
                continue
            try:
                with self._lock:
                    if run is None:
                        run = self._open_run()
                    outcomes = run([batch.changes for batch in group])
            except BaseException as error:  # noqa: BLE001 - raised in every caller that waits
                outcomes = [[_raised(error)] for _ in group]
            _wake(list(zip(group, outcomes, strict=True)))
        self._close_database()

    def _drain(self) -> tuple[list[Batch], bool]:
        """Everything that waits, up to the limit, and whether more may come."""
        group: list[Batch] = []
        size = 0
        item = self._queue.get()
        while item is not None:
            group.append(item)
            size += len(item.changes)
            if size >= GROUP_LIMIT:
                return group, True
            try:
                item = self._queue.get_nowait()
            except Empty:
                return group, True
        return group, False


def _raised(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(f"the writer failed: {error!r}")


def _wake(settled: Sequence[tuple[Batch, Sequence[Outcome]]]) -> None:
    """Notify every caller of the result of its batch, each loop once: waking a loop is expensive."""
    for loop in {batch.loop for batch, _ in settled}:
        mine = [one for one in settled if one[0].loop is loop]
        with suppress(RuntimeError):  # nothing waits in a closed loop
            loop.call_soon_threadsafe(_settle, mine)


def _settle(settled: Sequence[tuple[Batch, Sequence[Outcome]]]) -> None:
    """In the callers' loop: answers, or the first thing that was raised."""
    for batch, outcomes in settled:
        if batch.future.done():
            continue  # its caller has given up
        answers: list[Answer] = []
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                batch.future.set_exception(outcome)
                break
            answers.append(outcome)
        else:
            batch.future.set_result(answers)
