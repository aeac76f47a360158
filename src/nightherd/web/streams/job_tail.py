"""The newest events of one job that is followed, in memory and ready to send."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

import anyio
import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.live_text import TextDelta, is_about_answer
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Journals, Tail, TextTail
from nightherd.views.jobs.event_bodies import TEXT_LIMIT, short_event
from nightherd.views.jobs.jobs import lost_row

KEPT_EVENTS = 4_096
KEPT_BYTES = 4 * 1024 * 1024
SENT_BYTES = 256 * 1024
"""Bytes that are sent at once."""


class Line(msgspec.Struct, frozen=True):
    """One event as its journal has it, encoded once for all who follow."""

    seq: int
    kind: bytes
    data: bytes
    short: bytes
    """The same with long texts cut; the very same bytes where nothing is long."""
    is_end: bool
    """Whether it ends the job."""

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        return len(self.data) + (0 if self.short is self.data else len(self.short))


class Frame(msgspec.Struct, frozen=True):
    """One event or several, ready to be sent: the number of the last, and whether it ends the job."""

    seq: int
    data: bytes
    is_end: bool


def line_of(journals: Journals, job_id: JobId, event: Event) -> Line:
    """Return `event` as it is sent."""
    kind = str(type(event).__struct_config__.tag)
    data = short = msgspec.json.encode(event)
    if len(data) > TEXT_LIMIT or journals.stored_bodies(event):
        short = msgspec.json.encode(short_event(journals, job_id, event))
    is_end = isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
    return Line(event.seq, kind.encode(), data, short, is_end)


def lost_frame(job: ObservedJob) -> bytes:
    """The event that a job has no live worker. It has no id: who comes back asks for events of the journal."""
    data = msgspec.json.encode({"job_id": job.id, **(lost_row(job.lost) or {})})
    return b"event: lost\ndata: %s\n\n" % data


def first_of(lines: Sequence[Line]) -> Sequence[Line]:
    """As many of the first as go out at once; a slow client has no more than that waiting for it."""
    size, count = 0, 0
    for line in lines:
        size += len(line.data)
        if count and size > SENT_BYTES:
            break
        count += 1
    return lines[:count]


def joined(lines: Sequence[Line]) -> Frame:
    """The first of `lines` as server-sent events; the number of each is the id to come back with."""
    some = first_of(lines)
    data = b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n" % (line.seq, line.kind, line.data) for line in some
    )
    return Frame(some[-1].seq, data, some[-1].is_end)


class JobTail:
    """The newest events of one job, as long as it is followed."""

    def __init__(
        self, tail: Tail, text: TextTail, floor: int, make_line: Callable[[Event], Line]
    ) -> None:
        self.floor = floor
        """Everything after this one is in memory."""
        self.followers = 0
        self.is_over = False
        """Nothing more will come."""
        self.is_broken = False
        """The journal could not be read: those who follow are let go, and come back from where they were."""
        self.changed = anyio.Event()
        self.listeners: set[Callable[[], None]] = set()
        """Called when something has come."""
        self._tail = tail
        self._text = text
        self._make_line = make_line
        self._answered = 0
        """The last event that recorded an answer."""
        self._pieces: deque[tuple[int, bytes]] = deque()
        """The answer that is coming in, as JSON: numbered pieces."""
        self._piece_count = 0
        self.beats = 0
        """How often it was said that nothing has happened for a while."""
        self.lost: bytes | None = None
        """What is sent while the job has no live worker; None while it has one, or needs none."""
        self._lines: deque[Line] = deque()
        self._bytes = 0
        self._parts: dict[int, Frame] = {}

    def after(self, seq: int) -> Frame | None:
        """What is in memory beyond `seq`, as much as goes out at once; None when there is nothing.

        Most followers are at the same place: what was put together for one is there for the next.
        """
        part = self._parts.get(seq)
        if part is None:
            later = self.lines_after(seq)
            if not later:
                return None
            part = self._parts[seq] = joined(later)
        return part

    def lines_after(self, seq: int) -> list[Line]:
        """What is in memory beyond `seq`."""
        lines = self._lines
        if not lines or lines[-1].seq <= seq:
            return []
        # Numbers have no gaps but where a journal is damaged: the place is found by counting back.
        back = min(lines[-1].seq - seq, len(lines))
        later = islice(lines, len(lines) - back, None)
        return [line for line in later if line.seq > seq]

    def add(self, events: Sequence[Event]) -> None:
        """More has come."""
        self._parts.clear()
        for event in events:
            line = self._make_line(event)
            if is_about_answer(event):
                self._answered = event.seq
                self._pieces.clear()
            self._lines.append(line)
            self._bytes += line.size
            self.is_over = self.is_over or line.is_end
        while len(self._lines) > KEPT_EVENTS or (self._bytes > KEPT_BYTES and len(self._lines) > 1):
            dropped = self._lines.popleft()
            self._bytes -= dropped.size
            self.floor = dropped.seq
        self.notify()

    def notify(self) -> None:
        """Wake everybody who waits."""
        changed, self.changed = self.changed, anyio.Event()
        changed.set()
        for listener in tuple(self.listeners):
            listener()

    def add_text(self, deltas: Sequence[TextDelta]) -> None:
        """Take more of the answer that is coming in."""
        for delta in deltas:
            if delta.after >= self._answered:
                self._piece_count += 1
                self._pieces.append((self._piece_count, msgspec.json.encode(delta)))
        self.notify()

    def text_after(self, piece: int) -> tuple[int, list[bytes]]:
        """Return what there is of the answer beyond piece `piece`, as JSON, and the number of its last piece."""
        later = [data for number, data in self._pieces if number > piece]
        return (self._piece_count, later) if later else (piece, [])

    def poll(self) -> tuple[Sequence[Event], Sequence[TextDelta]]:
        """Return what is new in the journal, and of the answer that is coming in once the journal has nothing."""
        events = self._tail.poll()
        return events, () if events else self._text.poll()

    def close(self) -> None:
        """Close the files."""
        self._tail.close()
        self._text.close()
