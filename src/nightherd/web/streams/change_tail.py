"""The newest changes of the fleet, as rows of lists: the ledger is read once, for every stream that is open.

A row is read and encoded when the first stream sends it; the others send the same bytes. Where a row changed again
since, only its newest state is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from nightherd.errors import NightherdError, StateError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.ports import ChangeFeed, LedgerEntry, StateReader
from nightherd.views.jobs.jobs import observe_jobs
from nightherd.views.runs.changes import SNAPSHOT
from nightherd.views.streams.cursor import Place, mark_of
from nightherd.views.streams.rows import StreamRows, Touched, touched_rows
from nightherd.web.read_in_thread import ReadInThread
from nightherd.web.streams.job_tail import lost_frame
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import system_clock

LOOK_AGAIN_S = 0.03
LOOKS_PER_LOST = 40
"""How many looks at the ledger go by between two at who has lost their worker."""
ENTRIES = 1_000
"""Changes that are read at once."""
KEPT_ROWS = 8_192
KEPT_BYTES = 4 * 1024 * 1024
RUNNING = 1_000
"""Running jobs that are looked at for lost workers: the newest."""


class ChangedRow(msgspec.Struct, kw_only=True):
    """A row that a change touched; encoded once it was asked for, and empty when no list shows it."""

    change: int
    mark: str
    touched: Touched
    data: bytes | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The kind of row, and its id."""
        return self.touched.kind, self.touched.id


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Rows in the order of the ledger, and the place after them."""

    rows: Sequence[ChangedRow]
    place: Place
    is_continuous: bool = True
    """Whether they follow on what was read before: not where the ledger begins anew."""


class ChangeTail:
    """What has changed since the first stream was opened. An async context manager: it works in the background."""

    def __init__(
        self,
        open_feed: Callable[[], ChangeFeed],
        ledger_end: Callable[[], int],
        rows: StreamRows,
        ask: ReadInThread,
    ) -> None:
        self._feed = open_feed()
        self._open_feed = open_feed
        self._ledger_end = ledger_end
        self._rows = rows
        self._ask = ask
        self.place = Place()
        """Everything up to here is in memory, or dropped from it."""
        self.floor = 0
        """All rows of later changes are in memory."""
        self.is_broken = False
        """The ledger could not be read: streams end, and clients come back from where they were."""
        self.lost: dict[JobId, bytes] = {}
        """By running job without a live worker, what is sent about it."""
        self._kept: deque[ChangedRow] = deque()
        self._newest: dict[tuple[str, str], ChangedRow] = {}
        self._bytes = 0
        self._listeners: set[Callable[[], None]] = set()
        self._limiter = CapacityLimiter(2)
        self._reading = anyio.Lock()
        self._begun: anyio.Event | None = None
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        return await tasks.__aexit__(kind, error, trace)

    async def join(self, listener: Callable[[], None]) -> None:
        """Follow until `leave`; `listener` is called when something has changed."""
        if self._tasks is None:
            raise NightherdError("the server is closing")
        self._listeners.add(listener)
        if self._begun is None:
            self._begun = anyio.Event()
            self._tasks.start_soon(self._watch, self._begun)
        await self._begun.wait()

    def leave(self, listener: Callable[[], None]) -> None:
        """Follow no longer; without followers nothing is read."""
        self._listeners.discard(listener)

    async def find_place(self, place: Place) -> Place | None:
        """The place in this ledger; None when it is of another ledger, or is not there or not readable any more."""
        return await to_thread.run_sync(self._find_place, place, limiter=self._limiter)

    async def after(self, place: Place) -> Changes:
        """The rows that changed after `place`: from memory, or a block of them from the ledger for one who is behind."""
        if place.change > self.place.change:
            return Changes(rows=(), place=place)  # it has read the ledger itself, and further
        if place.change > self.floor or (place.change == self.floor and place.sent is None):
            rows = self._in_memory(place)
            return Changes(rows=rows, place=self.place)
        return await to_thread.run_sync(self._read, place, self._open_feed, limiter=self._limiter)

    async def encode(self, rows: Sequence[ChangedRow]) -> None:
        """Fill in the data of `rows`, as their lists show them now."""
        async with self._reading:
            missing = [row for row in rows if row.data is None]
            if not missing:
                return
            wanted = [row.key for row in missing]
            found = await self._ask(lambda reader: self._rows.read(reader, wanted))
            for row in missing:
                shown = found.get(row.key)
                row.data = b"" if shown is None else msgspec.json.encode(shown)
                if self._newest.get(row.key) is row:
                    self._bytes += len(row.data)
            self._drop()

    def _in_memory(self, place: Place) -> list[ChangedRow]:
        rows: list[ChangedRow] = []
        for row in reversed(self._kept):
            if not place.is_before(row.change, row.touched.index):
                break
            if self._newest.get(row.key) is row:
                rows.append(row)
        return rows[::-1]

    def _read(self, place: Place, feed: Callable[[], ChangeFeed]) -> Changes:
        rows: dict[tuple[str, str], ChangedRow] = {}
        last = place
        for entry in islice(feed().read(after=place.read_after), ENTRIES):
            if entry.kind == SNAPSHOT:
                return Changes(rows=(), place=place, is_continuous=False)
            for row in _rows_of(entry):
                if place.is_before(row.change, row.touched.index):
                    rows.pop(row.key, None)  # in the order in which they changed last
                    rows[row.key] = row
            last = Place(change=entry.change, mark=mark_of(entry))
        return Changes(rows=list(rows.values()), place=last)

    def _find_place(self, place: Place) -> Place | None:
        if place.change > self._ledger_end():
            return None
        if place.change == 0:
            return place
        try:
            entry = next(self._open_feed().read(after=place.change - 1), None)
        except StateError:
            return None
        if entry is None or entry.change != place.change or mark_of(entry) != place.mark:
            return None
        return place

    def _end_of_ledger(self) -> Place:
        """The place after the last change there is."""
        last = Place()
        for entry in self._feed.read(after=max(self._ledger_end() - 1, 0)):
            last = Place(change=entry.change, mark=mark_of(entry))
        return last

    async def _watch(self, begun: anyio.Event) -> None:
        """Read the ledger as long as there is a stream."""
        try:
            self.is_broken = False
            await self._begin_at_end()
            looks = 0
            while self._listeners:
                begun.set()
                found = await to_thread.run_sync(
                    self._read, self.place, lambda: self._feed, limiter=self._limiter
                )
                if found.is_continuous:
                    self._add(found)
                else:
                    await self._begin_at_end()
                if looks % LOOKS_PER_LOST == 0:
                    await self._look_for_lost()
                looks += 1
                await anyio.sleep(LOOK_AGAIN_S)
        except Exception:  # noqa: BLE001 (an edge: a ledger that cannot be read ends no other request)
            self.is_broken = True
        finally:
            self._begun = None
            self._forget()
            begun.set()
            self._notify()

    async def _begin_at_end(self) -> None:
        """Keep what changes from now on."""
        place = await to_thread.run_sync(self._end_of_ledger, limiter=self._limiter)
        self._forget()
        self.place, self.floor = place, place.change
        self._notify()

    def _add(self, found: Changes) -> None:
        if found.place == self.place:
            return
        self.place = found.place
        for row in found.rows:
            before = self._newest.pop(row.key, None)
            if before is not None:
                self._bytes -= len(before.data or b"")
            self._newest[row.key] = row
            self._kept.append(row)
        self._drop()
        self._notify()

    def _drop(self) -> None:
        """Keep no more than a bounded part in memory."""
        while self._kept and (len(self._kept) > KEPT_ROWS or self._bytes > KEPT_BYTES):
            row = self._kept.popleft()
            self.floor = row.change
            if self._newest.get(row.key) is row:
                del self._newest[row.key]
                self._bytes -= len(row.data or b"")

    def _forget(self) -> None:
        self._kept.clear()
        self._newest.clear()
        self._bytes = 0
        self.lost = {}

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    async def _look_for_lost(self) -> None:
        lost = await self._ask(_lost_jobs)
        if lost != self.lost:
            self.lost = lost
            self._notify()


def _rows_of(entry: LedgerEntry) -> list[ChangedRow]:
    mark = mark_of(entry)
    return [
        ChangedRow(change=entry.change, mark=mark, touched=touched)
        for touched in touched_rows(entry)
    ]


def _lost_jobs(reader: StateReader) -> dict[JobId, bytes]:
    running = reader.list_jobs(JobQuery(status=JobStatus.RUNNING, limit=RUNNING))
    jobs = observe_jobs(reader, running, is_at_work, system_clock().now())
    return {job.id: lost_frame(job) for job in jobs if job.lost is not None}
