"""Journals in memory: the same promises without a file, for tests and for trying things out.

Events go through the real codec, so what comes back is what a file would give back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping

import msgspec

from nightherd.errors import FencedError, JournalError, RefusedError
from nightherd.journal.bodies import load_output, restore, seal, stored_bodies
from nightherd.journal.codec import read_back
from nightherd.journal.fence import Fence
from nightherd.journal.follow import INTERVAL
from nightherd.journal.messages import ended_message
from nightherd.model.ids import ExecutionId, JobId, parse_job_id
from nightherd.model.journal.event import VERSION, Event, FullOutput
from nightherd.model.journal.live_text import TextDelta
from nightherd.ports import BlobRef, CallLater, Clock, Findings, Wait


class MemoryBlobs:
    """Large bodies, kept in a dictionary."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}

    def put(self, chunks: Iterable[bytes], *, kind: str = "bytes") -> BlobRef:
        """Keep the bytes."""
        data = b"".join(chunks)
        ref = BlobRef(sha256=hashlib.sha256(data).hexdigest(), size=len(data), kind=kind)
        self._bodies[ref.sha256] = data
        return ref

    def get(self, ref: BlobRef) -> bytes:
        """The bytes again."""
        return self._bodies[ref.sha256]

    def read(self, sha256: str) -> Generator[bytes, None, None] | None:
        """The bytes in one piece."""
        data = self._bodies.get(sha256)
        return None if data is None else (piece for piece in (data,))


class MemoryLog:
    """One job's events, and where its fence stands."""

    def __init__(self) -> None:
        self.fence = Fence()
        self.events: list[Event] = []
        self.ends: dict[int, int] = {}
        """Which event ends which message."""


class MemoryJournal:
    """A journal in memory, open for one execution."""

    def __init__(
        self,
        log: MemoryLog,
        *,
        epoch: int,
        execution: ExecutionId,
        blobs: MemoryBlobs,
        clock: Clock,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._execution = execution
        self._blobs = blobs
        self._clock = clock
        self._is_open = True
        self._check_owner()

    @property
    def last_seq(self) -> int:
        """The sequence number of the last line; 0 when there is none."""
        return self._log.fence.seq

    def append(self, event: Event) -> Event:
        """Stamp `event`, keep it, return it as kept."""
        self._check_open()
        log = self._log
        stamped = msgspec.structs.replace(
            event,
            v=VERSION,
            seq=log.fence.seq + 1,
            epoch=self._epoch,
            timestamp=self._clock.now(),
            execution=self._execution,
        )
        sealed = seal(stamped, self._blobs)
        line = read_back(sealed.line)
        log.fence.admit(line)
        log.events.append(line)
        if (message := ended_message(line)) is not None:
            log.ends.setdefault(message, line.seq)
        return sealed.event

    def sync(self) -> None:
        """Only checks that the journal is still this execution's: memory survives no power cut."""
        self._check_open()

    def close(self) -> None:
        """No more appends."""
        self._is_open = False

    def _check_open(self) -> None:
        self._check_owner()
        if not self._is_open:
            raise JournalError("the journal is closed")

    def _check_owner(self) -> None:
        epoch = self._log.fence.epoch
        if epoch > self._epoch:
            raise FencedError(
                f"{self._execution} (epoch {self._epoch}) no longer owns its journal: epoch {epoch} does"
            )


class MemoryText:
    """Live text in memory, of one execution or left over from it; pieces are there at once."""

    def __init__(self, deltas: list[TextDelta]) -> None:
        self._deltas = deltas

    def append(self, delta: TextDelta) -> None:
        """Keep the piece."""
        self._deltas.append(delta)

    def clear(self) -> None:
        """Keep nothing."""
        self._deltas.clear()

    def close(self) -> None:
        """Keep nothing."""
        self._deltas.clear()

    def leave(self) -> None:
        """Keep what is there."""


class MemoryTextTail:
    """A place in live text in memory."""

    def __init__(self, deltas: list[TextDelta]) -> None:
        self._deltas = deltas
        self._place = (0, 0, 0)

    def poll(self) -> list[TextDelta]:
        """Return what is new."""
        found = [
            delta for delta in self._deltas if (delta.epoch, delta.part, delta.at + 1) > self._place
        ]
        if found:
            last = found[-1]
            self._place = (last.epoch, last.part, last.at + len(last.text))
        return found

    def close(self) -> None:
        """Nothing to give back."""


class MemoryJournals:
    """All journals of a process, gone with it."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._blobs = MemoryBlobs()
        self._logs: dict[JobId, MemoryLog] = {}
        self._texts: dict[JobId, list[TextDelta]] = {}

    def open(self, job_id: JobId, *, epoch: int, execution: ExecutionId) -> MemoryJournal:
        """The job's journal, made if need be."""
        log = self._logs.setdefault(parse_job_id(job_id), MemoryLog())
        return MemoryJournal(
            log, epoch=epoch, execution=execution, blobs=self._blobs, clock=self._clock
        )

    def read(self, job_id: JobId, *, after: int = 0, load_blobs: bool = True) -> Iterator[Event]:
        """Every event after `after`, in order."""
        place = after
        while place < len(events := self._events(job_id)):
            yield self._shown(events[place], load_blobs)
            place += 1

    def last(self, job_id: JobId, count: int, *, load_blobs: bool = False) -> list[Event]:
        """The last `count` events."""
        events = self._events(job_id)
        kept = events[-count:] if count > 0 else []
        return [self._shown(event, load_blobs) for event in kept]

    def follow(
        self, job_id: JobId, *, after: int = 0, wait: Wait, load_blobs: bool = False
    ) -> Iterator[Event]:
        """Every event after `after`, then each new one, until `wait` says stop."""
        while True:
            for event in self.read(job_id, after=after, load_blobs=load_blobs):
                after = event.seq
                yield event
            if wait(INTERVAL):
                return

    def follower(self, job_id: JobId, *, after: int = 0, load_blobs: bool = False) -> MemoryTail:
        """The same without the waiting."""
        return MemoryTail(self, job_id, after=after, load_blobs=load_blobs)

    def seq_of_message(self, job_id: JobId, message: int) -> int | None:
        """The number of the event that ends the message."""
        log = self._logs.get(parse_job_id(job_id))
        return log.ends.get(message) if log is not None else None

    def keep_output(self, pieces: Iterable[str], *, left_out: int = 0) -> FullOutput:
        """Keep the text in memory."""
        ref = self._blobs.put([piece.encode(errors="replace") for piece in pieces], kind="text")
        return FullOutput(sha256=ref.sha256, size=ref.size, left_out=left_out)

    def read_output(self, output: FullOutput) -> str:
        """Return the whole text."""
        return load_output(output, self._blobs)

    def stored_bodies(self, event: Event) -> Mapping[str, BlobRef]:
        """Return the blobs that the event names, by field."""
        return stored_bodies(event)

    def read_blob(self, sha256: str) -> Generator[bytes, None, None] | None:
        """Return the bytes of a blob in pieces; None when there is none of that name."""
        return self._blobs.read(sha256)

    def live_text(self, job_id: JobId, call_later: CallLater) -> MemoryText:
        """Return the writer of the job's live text."""
        return MemoryText(self._texts.setdefault(parse_job_id(job_id), []))

    def text_follower(self, job_id: JobId) -> MemoryTextTail:
        """Return a place at the beginning of the job's live text."""
        return MemoryTextTail(self._texts.setdefault(parse_job_id(job_id), []))

    def leftover_text(self, job_id: JobId) -> list[TextDelta]:
        """Return what is kept."""
        return list(self._texts.get(parse_job_id(job_id), ()))

    def remove_text(self, job_id: JobId) -> None:
        """Keep nothing."""
        self._texts.get(parse_job_id(job_id), []).clear()

    def job_ids(self) -> Iterator[JobId]:
        """Every job that has a journal."""
        yield from list(self._logs)

    def examine(self, job_id: JobId) -> Findings:
        """What a reading of the whole journal comes across."""
        log = self._logs.get(parse_job_id(job_id))
        return log.fence.findings() if log is not None else Findings()

    def put_aside(self, job_id: JobId) -> None:
        """Forget a journal in which there is no event."""
        if self._events(job_id):
            raise RefusedError(f"the journal of {job_id} has events")
        self._logs.pop(job_id, None)

    def _events(self, job_id: JobId) -> list[Event]:
        log = self._logs.get(parse_job_id(job_id))
        return log.events if log is not None else []

    def _shown(self, event: Event, load_blobs: bool) -> Event:
        return restore(event, self._blobs if load_blobs else None)


class MemoryTail:
    """A place in a journal in memory that moves on with each `poll`."""

    def __init__(
        self, journals: MemoryJournals, job_id: JobId, *, after: int, load_blobs: bool
    ) -> None:
        self._journals = journals
        self._job_id = job_id
        self._after = after
        self._load_blobs = load_blobs

    def poll(self) -> list[Event]:
        """The next events there are; empty when there is nothing new by now."""
        found = self._journals.read(self._job_id, after=self._after, load_blobs=self._load_blobs)
        events = list(found)
        if events:
            self._after = events[-1].seq
        return events

    def close(self) -> None:
        """Nothing to give back."""
