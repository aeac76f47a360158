"""Jobs that are followed: the journal of each is read once, for everybody who follows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Self

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import Event
from nightherd.ports import Clock, Journals, StateReader
from nightherd.views.jobs.jobs import observe_job
from nightherd.web.read_in_thread import ReadInThread
from nightherd.web.streams.job_tail import Frame, JobTail, Line, joined, line_of, lost_frame
from nightherd.wiring.machine import is_at_work

SHORTEST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.03
LOOKS_PER_QUESTION = 40
"""While nothing comes, how many looks at the journal go by between two at the job's row."""
BLOCK = 256
"""Events that are read at once by one who is behind."""
HEARTBEAT_S = 15.0
STILL_THERE = b": still there\n\n"


class Tails:
    """Every job that is followed, each looked at once. An async context manager: it works in the background."""

    def __init__(self, journals: Journals, ask: ReadInThread, clock: Clock) -> None:
        self._journals = journals
        self._clock = clock
        self._ask = ask
        self._tails: dict[JobId, JobTail] = {}
        self._limiter = CapacityLimiter(8)
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

    async def follow(self, job_id: JobId, after: int) -> AsyncGenerator[bytes, None]:
        """What is to be sent to one who has everything up to `after`, until the job has ended.

        Every now and then, when nothing happens, a comment that says that the stream is still there. Once for each
        worker that the job loses, an event `lost` without an id.
        """
        tail = await self.join(job_id)
        try:
            seen, pieces = after, 0
            sent: bytes | None = None
            while True:
                changed, is_over, beats = tail.changed, tail.is_over, tail.beats
                if seen >= tail.floor:
                    part = tail.after(seen)
                else:
                    part = await self._behind(tail, job_id, seen)
                if part is not None:
                    seen = part.seq
                    yield part.data
                    if part.is_end:
                        return
                    continue
                pieces, text = tail.text_after(pieces)
                if text:
                    # It has no id: the place to come back to stays an event's.
                    yield b"".join(b"event: text_delta\ndata: %s\n\n" % piece for piece in text)
                elif is_over:
                    return
                elif tail.lost is not None and tail.lost != sent:
                    sent = tail.lost
                    yield sent
                else:
                    await changed.wait()
                    if tail.beats != beats:
                        yield STILL_THERE
        finally:
            self.leave(job_id, tail)

    async def read(self, job_id: JobId, after: int, limit: int) -> list[Event]:
        """At most `limit` events after `after`, from the journal."""
        return await to_thread.run_sync(self._read, job_id, after, limit, limiter=self._limiter)

    async def has_more(self, job_id: JobId, after: int) -> bool:
        """Whether there is an event after `after`."""
        return bool(await self.read(job_id, after, 1))

    async def lines_after(self, job_id: JobId, tail: JobTail, seen: int) -> list[Line]:
        """The next lines after `seen`: from memory, or a block of them from the journal for one who is behind."""
        if seen < tail.floor:
            events = await self.read(job_id, seen, BLOCK)
            if events:
                return [line_of(self._journals, job_id, event) for event in events]
            # Nothing between here and what is in memory: damaged lines, which cannot be read.
        return tail.lines_after(seen)

    async def newest_seq(self, job_id: JobId) -> int:
        """The number of the job's last event; 0 when there is none."""
        newest = await to_thread.run_sync(self._journals.last, job_id, 1, limiter=self._limiter)
        return newest[-1].seq if newest else 0

    async def _behind(self, tail: JobTail, job_id: JobId, seen: int) -> Frame | None:
        lines = await self.lines_after(job_id, tail, seen)
        return joined(lines) if lines else None

    def _read(self, job_id: JobId, after: int, limit: int) -> list[Event]:
        return list(islice(self._journals.read(job_id, after=after, load_blobs=False), limit))

    async def join(self, job_id: JobId, listener: Callable[[], None] | None = None) -> JobTail:
        """The tail of a job, for one who follows it until `leave`; `listener` is called when something has come."""
        tail = self._tails.get(job_id)
        if tail is None:
            newest = await self.newest_seq(job_id)
            tail = self._tails.get(job_id)  # another request may have been quicker
            if tail is None:
                tail = self._begin(job_id, newest)
        tail.followers += 1
        if listener is not None:
            tail.listeners.add(listener)
        return tail

    def _begin(self, job_id: JobId, floor: int) -> JobTail:
        if self._tasks is None:
            raise NightherdError("the server is closing")
        text = self._journals.text_follower(job_id)
        follower = self._journals.follower(job_id, after=floor)
        tail = JobTail(follower, text, floor, partial(line_of, self._journals, job_id))
        self._tails[job_id] = tail
        self._tasks.start_soon(self._watch, job_id, tail)
        return tail

    def leave(
        self, job_id: JobId, tail: JobTail, listener: Callable[[], None] | None = None
    ) -> None:
        """Follow the job no longer; nobody's tail is not read."""
        tail.followers -= 1
        if listener is not None:
            tail.listeners.discard(listener)
        if tail.followers == 0 and self._tails.get(job_id) is tail:
            del self._tails[job_id]

    async def _watch(self, job_id: JobId, tail: JobTail) -> None:
        """Read the journal until it is no longer followed, or nothing more can come."""
        wait, looks, last = SHORTEST_WAIT_S, 0, anyio.current_time()
        try:
            # The row may have said before the first look that it is over.
            is_terminal = await self._look_at_row(job_id, tail)
            while self._tails.get(job_id) is tail and not tail.is_over:
                events, deltas = await to_thread.run_sync(tail.poll, limiter=self._limiter)
                if deltas:
                    tail.add_text(deltas)
                if events:
                    tail.lost = None
                    tail.add(events)
                    wait, looks, last = SHORTEST_WAIT_S, 0, anyio.current_time()
                    await anyio.sleep(wait)  # what comes together goes out together
                elif is_terminal:
                    # The journal has a job's end before its row does: there was one look more.
                    tail.is_over = True
                    tail.notify()
                else:
                    looks += 1
                    if looks % LOOKS_PER_QUESTION == 0:
                        is_terminal = await self._look_at_row(job_id, tail)
                    await anyio.sleep(wait)
                    wait = min(wait * 1.1, LONGEST_WAIT_S)
                    if anyio.current_time() - last >= HEARTBEAT_S:
                        last = anyio.current_time()
                        tail.beats += 1
                        tail.notify()
        except Exception:  # noqa: BLE001 (an edge: one journal that cannot be read takes no other stream with it)
            tail.is_over = tail.is_broken = True
            tail.notify()
        finally:
            if self._tails.get(job_id) is tail:
                del self._tails[job_id]
            tail.close()

    async def _look_at_row(self, job_id: JobId, tail: JobTail) -> bool:
        """Whether the job is over; its followers are notified when it has lost its worker."""
        job = await self._ask(lambda reader: self._observed(reader, job_id))
        if job is None or job.is_terminal:
            return True
        lost = None if job.lost is None else lost_frame(job)
        if lost != tail.lost:
            tail.lost = lost
            tail.notify()
        return False

    def _observed(self, reader: StateReader, job_id: JobId) -> ObservedJob | None:
        job = reader.find_job(job_id)
        return None if job is None else observe_job(reader, job, is_at_work, self._clock.now())
