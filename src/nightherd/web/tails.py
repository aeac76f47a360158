"""Counters: what the server has done since it began, for `/metrics`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Self

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from nightherd.errors import NightherdError
from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.live_text import TextDelta, is_about_answer
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Clock, Journals, StateReader, Tail, TextTail
from nightherd.views.jobs import lost_row, observe_job
from nightherd.web.read_in_thread import ReadInThread
from nightherd.wiring.machine import is_at_work


@dataclass(slots=True)
class Counters:
    """Numbers that only grow, and how many follow at this moment."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Answers by method and status."""
    deliveries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Messages that came in, by endpoint and what became of them."""
    followers: int = 0
    """Streams that are open now."""
    events_sent: int = 0


SHORTEST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.03
LOOKS_PER_QUESTION = 40
"""While nothing comes, how many looks at the journal go by between two at the job's row."""
KEPT_EVENTS = 4_096
KEPT_BYTES = 4 * 1024 * 1024
SENT_BYTES = 256 * 1024
"""Bytes that are sent at once."""
BLOCK = 256
"""Events that are read at once by one who is behind."""
HEARTBEAT_S = 15.0
STILL_THERE = b": still there\n\n"


class Frame(msgspec.Struct, frozen=True):
    """One event or several, ready to be sent: the number of the last, and whether it ends the job."""

    seq: int
    data: bytes
    is_end: bool


def frame_of(event: Event) -> Frame:
    """`event` as a server-sent event; its number is the id to come back with."""
    line = msgspec.json.encode(event)
    kind = str(type(event).__struct_config__.tag)
    data = b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, kind.encode(), line)
    is_end = isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
    return Frame(event.seq, data, is_end)


def text_frame(delta: TextDelta) -> bytes:
    """Return a piece of an answer as a server-sent event. It has no id: the place to come back to stays an event's."""
    return b"event: text_delta\ndata: %s\n\n" % msgspec.json.encode(delta)


def lost_frame(job: ObservedJob) -> bytes:
    """The event that a job has no live worker. It has no id: who comes back asks for events of the journal."""
    data = msgspec.json.encode({"job_id": job.id, **(lost_row(job.lost) or {})})
    return b"event: lost\ndata: %s\n\n" % data


def joined(frames: Sequence[Frame]) -> Frame:
    """As many of the first as go out at once; a slow client has no more than that waiting for it."""
    size, count = 0, 0
    for frame in frames:
        size += len(frame.data)
        if count and size > SENT_BYTES:
            break
        count += 1
    data = b"".join(frame.data for frame in frames[:count])
    return Frame(frames[count - 1].seq, data, frames[count - 1].is_end)


class JobTail:
    """The newest events of one job, as long as it is followed."""

    def __init__(self, tail: Tail, text: TextTail, floor: int) -> None:
        self.floor = floor
        """Everything after this one is in memory."""
        self.followers = 0
        self.is_over = False
        """Nothing more will come."""
        self.changed = anyio.Event()
        self._tail = tail
        self._text = text
        self._answered = 0
        """The last event that recorded an answer."""
        self._pieces: deque[tuple[int, bytes]] = deque()
        """The answer that is coming in, ready to send: numbered pieces."""
        self._piece_count = 0
        self.beats = 0
        """How often it was said that nothing has happened for a while."""
        self.lost: bytes | None = None
        """What is sent while the job has no live worker; None while it has one, or needs none."""
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._parts: dict[int, Frame] = {}

    def after(self, seq: int) -> Frame | None:
        """What is in memory beyond `seq`, as much as goes out at once; None when there is nothing.

        Most followers are at the same place: what was put together for one is there for the next.
        """
        frames = self._frames
        if not frames or frames[-1].seq <= seq:
            return None
        part = self._parts.get(seq)
        if part is None:
            # Numbers have no gaps but where a journal is damaged: the place is found by counting back.
            back = min(frames[-1].seq - seq, len(frames))
            later = islice(frames, len(frames) - back, None)
            part = self._parts[seq] = joined([frame for frame in later if frame.seq > seq])
        return part

    def add(self, events: Sequence[Event]) -> None:
        """More has come."""
        self._parts.clear()
        for event in events:
            frame = frame_of(event)
            if is_about_answer(event):
                self._answered = event.seq
                self._pieces.clear()
            self._frames.append(frame)
            self._bytes += len(frame.data)
            self.is_over = self.is_over or frame.is_end
        while len(self._frames) > KEPT_EVENTS or (
            self._bytes > KEPT_BYTES and len(self._frames) > 1
        ):
            dropped = self._frames.popleft()
            self._bytes -= len(dropped.data)
            self.floor = dropped.seq
        self.notify()

    def notify(self) -> None:
        """Wake everybody who waits."""
        changed, self.changed = self.changed, anyio.Event()
        changed.set()

    def add_text(self, deltas: Sequence[TextDelta]) -> None:
        """Take more of the answer that is coming in."""
        for delta in deltas:
            if delta.after >= self._answered:
                self._piece_count += 1
                self._pieces.append((self._piece_count, text_frame(delta)))
        self.notify()

    def text_after(self, piece: int) -> tuple[int, bytes]:
        """Return what there is of the answer beyond piece `piece`, and the number of its last piece."""
        later = [data for number, data in self._pieces if number > piece]
        return (self._piece_count, b"".join(later)) if later else (piece, b"")

    def poll(self) -> tuple[Sequence[Event], Sequence[TextDelta]]:
        """Return what is new in the journal, and of the answer that is coming in once the journal has nothing."""
        events = self._tail.poll()
        return events, () if events else self._text.poll()

    def close(self) -> None:
        """Close the files."""
        self._tail.close()
        self._text.close()


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
        tail = await self._join(job_id)
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
                    yield text
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
            self._leave(job_id, tail)

    async def read(self, job_id: JobId, after: int, limit: int) -> list[Event]:
        """At most `limit` events after `after`, from the journal."""
        return await to_thread.run_sync(self._read, job_id, after, limit, limiter=self._limiter)

    async def has_more(self, job_id: JobId, after: int) -> bool:
        """Whether there is an event after `after`."""
        return bool(await self.read(job_id, after, 1))

    async def _behind(self, tail: JobTail, job_id: JobId, seen: int) -> Frame | None:
        events = await self.read(job_id, seen, BLOCK)
        if not events:
            # Nothing between here and what is in memory: damaged lines, which cannot be read.
            return tail.after(seen)
        return joined([frame_of(event) for event in events])

    def _read(self, job_id: JobId, after: int, limit: int) -> list[Event]:
        return list(islice(self._journals.read(job_id, after=after, load_blobs=False), limit))

    async def _join(self, job_id: JobId) -> JobTail:
        tail = self._tails.get(job_id)
        if tail is None:
            newest = await to_thread.run_sync(self._journals.last, job_id, 1, limiter=self._limiter)
            tail = self._tails.get(job_id)  # another request may have been quicker
            if tail is None:
                tail = self._begin(job_id, newest[-1].seq if newest else 0)
        tail.followers += 1
        return tail

    def _begin(self, job_id: JobId, floor: int) -> JobTail:
        if self._tasks is None:
            raise NightherdError("the server is closing")
        text = self._journals.text_follower(job_id)
        tail = JobTail(self._journals.follower(job_id, after=floor), text, floor)
        self._tails[job_id] = tail
        self._tasks.start_soon(self._watch, job_id, tail)
        return tail

    def _leave(self, job_id: JobId, tail: JobTail) -> None:
        tail.followers -= 1
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
            # Those who follow are let go, and come back from where they were.
            tail.is_over = True
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
