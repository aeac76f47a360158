"""One client of the stream: what it has, and what it is sent next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypedDict

import anyio
import msgspec

from nightherd.errors import JournalError, NightherdError, StateError
from nightherd.model.ids import JobId
from nightherd.ports import StateReader
from nightherd.views.streams.cursor import Place, StreamCursor
from nightherd.views.streams.rows import JOB
from nightherd.web.read_in_thread import ReadInThread
from nightherd.web.streams.change_tail import ChangedRow, Changes, ChangeTail
from nightherd.web.streams.job_tail import JobTail, Line, first_of
from nightherd.web.streams.stream_topics import Topics
from nightherd.web.streams.tails import HEARTBEAT_S, STILL_THERE, Tails

MOST_BEHIND = 10_000
"""Changes after which a client fetches its lists again instead of reading every one."""
ROWS = 64
"""Rows that are sent at once."""


class StreamReady(TypedDict):
    """The first event of a stream: from where on everything is sent."""

    topics: list[str]
    jobs: dict[str, int]
    """By followed job, the event after which its events are sent."""
    unknown: list[str]
    """Topics whose job or run does not exist; nothing is sent about them."""


class StreamReset(TypedDict):
    """What a client has to fetch again, because it cannot be sent what it missed."""

    topics: list[str]


class StreamFollower:
    """Sends one client what it does not have. It keeps a place for each source, and never a queue."""

    def __init__(
        self,
        changes: ChangeTail,
        tails: Tails,
        ask: ReadInThread,
        topics: Topics,
        cursor: StreamCursor | None,
    ) -> None:
        self._changes = changes
        self._all_tails = tails
        self._ask = ask
        self._topics = topics
        self._cursor = cursor
        self._place = Place()
        self._seqs: dict[JobId, int] = {}
        """By followed job, the last event that was sent."""
        self._tails: dict[JobId, JobTail] = {}
        """Jobs of which more may come."""
        self._pieces: dict[JobId, int] = {}
        self._lost: dict[JobId, bytes] = {}
        """By job, what was sent about its lost worker."""
        self._unreadable: dict[JobId, float] = {}
        """By job whose journal cannot be read: when it is tried again."""
        self._reported: set[JobId] = set()
        """Jobs whose journals the client knows to be unreadable."""
        self._signal = anyio.Event()

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """What is to be sent, for as long as the client listens and its sources can be read."""
        await self._changes.join(self._wake)
        try:
            yield await self._begin()
            while not self._changes.is_broken:
                self._signal = signal = anyio.Event()
                is_idle = True
                async with aclosing(self._next()) as chunks:
                    async for chunk in chunks:
                        is_idle = False
                        yield chunk
                if is_idle:
                    with anyio.move_on_after(HEARTBEAT_S) as waiting:
                        await signal.wait()
                    if waiting.cancelled_caught:
                        yield STILL_THERE
        except NightherdError:
            return  # the client comes back to where it was
        finally:
            self._changes.leave(self._wake)
            for job_id in tuple(self._tails):
                self._let_go(job_id)

    def _wake(self) -> None:
        self._signal.set()

    async def _begin(self) -> bytes:
        """Find every place, and return the first events."""
        topics, cursor = self._topics, self._cursor
        unknown = await self._ask(self._unknown)
        again: list[str] = []
        place = self._changes.place
        is_foreign = False
        if cursor is not None:
            # Of another ledger than this one, such as one that was restored: its events are not ours either.
            is_foreign = await self._changes.find_place(cursor.place) is None
            if is_foreign or self._is_far(cursor.place):
                again += topics.lists
            else:
                place = cursor.place
        self._place = place
        for job_id, after in topics.jobs.items():
            if f"job:{job_id}" in unknown:
                continue
            received = None if cursor is None else cursor.seqs.get(job_id)
            given = after if received is None else received
            is_lost = is_foreign and received is not None
            if given is not None and not is_lost:
                self._seqs[job_id] = given
            if not await self._join(job_id) or is_lost:
                again.append(f"job:{job_id}")
        ready = StreamReady(
            topics=[*topics.lists, *(f"job:{job_id}" for job_id in topics.jobs)],
            jobs={str(job_id): seq for job_id, seq in self._seqs.items()},
            unknown=unknown,
        )
        data = self._event("ready", msgspec.json.encode(ready))
        return data + self._reset(again) if again else data

    async def _join(self, job_id: JobId) -> bool:
        """Follow a job after the last event that the client has, by default its last; False when it has to fetch the job again."""
        received = self._seqs.get(job_id)
        try:
            self._tails[job_id] = await self._all_tails.join(job_id, self._wake)
            newest = await self._all_tails.newest_seq(job_id)
        except StateError:
            return self._set_aside(job_id)
        if received is not None and received <= newest:
            return True
        self._seqs[job_id] = newest
        return received is None

    def _set_aside(self, job_id: JobId) -> bool:
        """Try again later to follow a job whose journal cannot be read; whether the client knows that."""
        if job_id in self._tails:
            self._let_go(job_id)
        self._unreadable[job_id] = anyio.current_time() + HEARTBEAT_S
        is_known = job_id in self._reported
        self._reported.add(job_id)
        return is_known

    async def _join_again(self) -> list[bytes]:
        """Follow the jobs whose journals can be read again."""
        again: list[str] = []
        for job_id, at in tuple(self._unreadable.items()):
            if anyio.current_time() < at:
                continue
            del self._unreadable[job_id]
            had_place = job_id in self._seqs
            is_continuous = await self._join(job_id)
            if job_id in self._tails and not (is_continuous and had_place):
                again.append(f"job:{job_id}")
        return [self._reset(again)] if again else []

    def _unknown(self, reader: StateReader) -> list[str]:
        jobs = (f"job:{id}" for id in self._topics.jobs if reader.find_job(id) is None)
        runs = (f"run:{id}" for id in sorted(self._topics.runs) if reader.find_run(id) is None)
        return [*jobs, *runs]

    def _is_far(self, place: Place) -> bool:
        return self._changes.place.change - place.change > MOST_BEHIND

    async def _next(self) -> AsyncGenerator[bytes, None]:
        """What can be sent now: of each source as much as goes out at once, and only then of the next."""
        if rows := await self._next_rows():
            yield b"".join(rows)
        if events := await self._join_again():
            yield b"".join(events)
        for job_id, tail in tuple(self._tails.items()):
            try:
                events = await self._next_of(job_id, tail)
            except StateError:  # one journal that cannot be read ends no stream of other things
                events = [] if self._set_aside(job_id) else [self._reset([f"job:{job_id}"])]
            if events:
                yield b"".join(events)
        if JOB in self._topics.kinds:
            lost = [
                data
                for job_id, data in self._changes.lost.items()
                if job_id not in self._tails and self._is_news(job_id, data)
            ]
            if lost:
                yield b"".join(lost)

    async def _next_rows(self) -> list[bytes]:
        if self._is_far(self._place):
            self._place = self._changes.place
            return [self._reset(self._topics.lists)]
        changes = await self._changes_after(self._place)
        if changes is None or not changes.is_continuous:
            self._place = self._changes.place
            return [self._reset(self._topics.lists)]
        rows = [row for row in changes.rows if self._topics.wants(row.touched)]
        some = rows[:ROWS]
        if some:
            await self._changes.encode(some)
        data = self._row_events(some)
        if len(some) == len(rows):
            self._place = changes.place
        else:
            self._wake()  # also when no list shows any of these
        return data

    async def _changes_after(self, place: Place) -> Changes | None:
        """What changed after `place`; None where the ledger is damaged: coming back there would end the same way."""
        try:
            return await self._changes.after(place)
        except StateError:
            return None

    def _row_events(self, rows: Sequence[ChangedRow]) -> list[bytes]:
        events: list[bytes] = []
        for row in rows:
            self._place = Place(change=row.change, sent=row.touched.index, mark=row.mark)
            if row.data:
                events.append(self._event(row.touched.kind, row.data))
        return events

    async def _next_of(self, job_id: JobId, tail: JobTail) -> list[bytes]:
        is_over = tail.is_over
        if tail.is_broken:
            raise JournalError(f"the journal of {job_id} cannot be read")
        lines = first_of(await self._all_tails.lines_after(job_id, tail, self._seqs[job_id]))
        if lines:
            self._reported.discard(job_id)
            return [self._line_event(job_id, line) for line in lines]
        self._pieces[job_id], text = tail.text_after(self._pieces.get(job_id, 0))
        events = [
            b'event: text_delta\ndata: {"job_id":"%s",%s\n\n' % (job_id.encode(), piece[1:])
            for piece in text
        ]
        if tail.lost is not None and self._is_news(job_id, tail.lost):
            events.append(tail.lost)
        if is_over:
            self._let_go(job_id)
        return events

    def _line_event(self, job_id: JobId, line: Line) -> bytes:
        self._seqs[job_id] = line.seq
        return self._event("event", b'{"job_id":"%s","event":%s}' % (job_id.encode(), line.short))

    def _is_news(self, job_id: JobId, lost: bytes) -> bool:
        """Whether the client was not told of this lost worker yet."""
        before, self._lost[job_id] = self._lost.get(job_id), lost
        return before != lost

    def _reset(self, topics: list[str]) -> bytes:
        return self._event("reset", msgspec.json.encode(StreamReset(topics=topics)))

    def _event(self, kind: str, data: bytes) -> bytes:
        cursor = str(StreamCursor(place=self._place, seqs=self._seqs))
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (cursor.encode(), kind.encode(), data)

    def _let_go(self, job_id: JobId) -> None:
        """Keep no tail in memory that others do not need."""
        tail = self._tails.pop(job_id)
        self._all_tails.leave(job_id, tail, self._wake)
