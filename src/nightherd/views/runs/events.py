"""The events of a run: its nodes, gates and status as the ledger has them, and the events of its jobs.

Changes come in the order of the ledger, the events of a job in the order of its journal, and all of them before the
change that ends the job. A cursor says exactly what was sent, so a client can stop anywhere and continue there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId, parse_job_id
from nightherd.model.journal.event import Event
from nightherd.model.workflows.run import RunId
from nightherd.ports import ChangeFeed, Journals, LedgerEntry, StateReader, Tail
from nightherd.views.runs.changes import SNAPSHOT, JobImage, RunChange, change_of_run, phase_in
from nightherd.views.runs.runs import find_run

BLOCK = 256
"""Events that are read at once, about."""
ENTRIES = 5_000
"""Changes of the ledger that are looked at in one go."""
MARGIN = timedelta(minutes=1)
"""How far the clock may go back without making the start of a run hard to find."""
END = "end"


class RunCursor(msgspec.Struct, frozen=True, kw_only=True):
    """A place among the events of a run. As text: `1041`, `1041.2,job-2026-11-18-abc123:17`, `1050,end`."""

    change: int = 0
    """The ledger's change whose events have been sent; all earlier ones have been, too."""
    sent: int | None = None
    """How many of its events have been sent; None for all."""
    seqs: Mapping[JobId, int] = msgspec.field(default_factory=dict)
    """By job that has not ended: its last event that has been sent."""
    has_ended: bool = False
    """Whether the end of the run has been sent."""

    def __str__(self) -> str:
        place = f"{self.change}" if self.sent is None else f"{self.change}.{self.sent}"
        jobs = (f"{job_id}:{seq}" for job_id, seq in self.seqs.items() if seq)
        return ",".join([place, *jobs, *([END] if self.has_ended else [])])

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self.has_ended and self.sent is None and not self.seqs


def parse_cursor(text: str) -> RunCursor:
    """Return the place that `text` names; `InvalidValueError` when it is none."""
    place, *parts = text.split(",")
    try:
        change, _, sent = place.partition(".")
        seqs = {}
        for part in parts:
            if part != END:
                job_id, _, seq = part.partition(":")
                seqs[parse_job_id(job_id)] = _number(seq)
        return RunCursor(
            change=_number(change),
            sent=_number(sent) if sent else None,
            seqs=seqs,
            has_ended=END in parts,
        )
    except InvalidValueError as error:
        raise InvalidValueError(f"{text[:100]!r} is not the id of an event of a run") from error


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise InvalidValueError(f"{text!r} is not a number")
    return int(text)


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event, and the cursor of what follows it."""

    cursor: str
    kind: str
    """`run`, `node`, `inbox` or `job`."""
    data: Mapping[str, Any]


class RunEventFollower:
    """Reads the events of one run from a cursor on; `poll` returns what has come since."""

    def __init__(
        self, run_id: RunId, cursor: RunCursor, feed: ChangeFeed, journals: Journals
    ) -> None:
        self._run_id = run_id
        self._feed = feed
        self._journals = journals
        self._started_at: datetime | None = None
        self._is_resumed = cursor.change > 0
        self._change = cursor.change if cursor.sent is None else cursor.change - 1
        """The last change all of whose events have been returned."""
        self._sent = cursor.sent or 0
        """How many events of the next change have been returned."""
        self._seqs = dict(cursor.seqs)
        """By job that has not ended, as far as the ledger has been read: its last event that was returned."""
        self._has_ended = cursor.has_ended
        self._is_from_snapshot = False
        """Whether the ledger does not have the start of the run."""
        self._phases: dict[JobId, str] = {}
        self._tails: dict[JobId, Tail] = {}

    @property
    def is_over(self) -> bool:
        """Whether the run and all its jobs have ended, and everything about them was returned."""
        return self._has_ended and not self._seqs and not self._sent

    def begin(self, reader: StateReader) -> None:
        """Learn when the run started and which jobs it has; call it once, before the first `poll`."""
        self._started_at = find_run(reader, self._run_id).started_at
        for job in reader.jobs_of_run(self._run_id):
            self._phases[job.id] = phase_in(self._run_id, job.node_id)
            # Of a job that began before the cursor, nothing may have been sent yet.
            if self._is_resumed and not job.is_terminal:
                self._seqs.setdefault(job.id, 0)

    def poll(self) -> list[RunEvent]:
        """Return the next events, at most a block or so; empty when there is nothing new by now."""
        if not self._is_resumed:
            self._change = self._start()
            self._is_resumed = True
        while not self.is_over:
            events, count = self._read_ledger()
            if events or count < ENTRIES:
                return events or self._read_jobs()
        return []

    def close(self) -> None:
        """Close the journals."""
        while self._tails:
            self._tails.popitem()[1].close()

    def _read_ledger(self) -> tuple[list[RunEvent], int]:
        """Return the events of the next changes, and how many changes there were."""
        events: list[RunEvent] = []
        count = 0
        for entry in islice(self._feed.read(after=self._change), ENTRIES):
            count += 1
            found = self._change_in(entry)
            if found is not None:
                for job in found.jobs:
                    if job.has_ended and self._is_followed(job, entry):
                        events += self._rest_of(job.id)
                if len(events) >= BLOCK:
                    return events, count  # the rest of this change comes with the next poll
                events += self._take(entry, found)
            self._change, self._sent = entry.change, 0
            if len(events) >= BLOCK or self.is_over:
                break
        return events, count

    def _is_followed(self, job: JobImage, entry: LedgerEntry) -> bool:
        """Whether events of a job that has ended may be left to send. In a new ledger, it may have ended long ago."""
        return job.id in self._seqs or entry.kind != SNAPSHOT or self._is_from_snapshot

    def _take(self, entry: LedgerEntry, found: RunChange) -> Iterator[RunEvent]:
        """Yield the events of a change that were not sent yet, and note which jobs have begun and ended."""
        for number, (kind, data) in enumerate(found.events[:-1], 1):
            if number > self._sent:
                yield self._event(kind, data, RunCursor(change=entry.change, sent=number))
        for job in found.jobs:
            if job.has_ended:
                self._seqs.pop(job.id, None)
                self._drop_tail(job.id)
            else:
                self._seqs.setdefault(job.id, 0)
        self._has_ended = self._has_ended or found.ends_run
        if found.events:
            kind, data = found.events[-1]
            yield self._event(kind, data, RunCursor(change=entry.change))

    def _rest_of(self, job_id: JobId) -> Iterator[RunEvent]:
        """Yield what a job that has ended recorded and was not sent yet, at most a block."""
        after = self._seqs.get(job_id, 0)
        for event in islice(self._journals.read(job_id, after=after, load_blobs=False), BLOCK):
            yield self._job_event(job_id, event)

    def _read_jobs(self) -> list[RunEvent]:
        """Return what open jobs have recorded since the last look."""
        events: list[RunEvent] = []
        for job_id, seq in list(self._seqs.items()):
            tail = self._tails.get(job_id)
            if tail is None:
                tail = self._journals.follower(job_id, after=seq)
                self._tails[job_id] = tail
            events += [self._job_event(job_id, event) for event in tail.poll()]
        return events

    def _job_event(self, job_id: JobId, event: Event) -> RunEvent:
        self._seqs[job_id] = event.seq
        data = {"job_id": job_id, "phase": self._phases.get(job_id, ""), "event": event}
        if self._sent:
            return self._event("job", data, RunCursor(change=self._change + 1, sent=self._sent))
        return self._event("job", data, RunCursor(change=self._change))

    def _event(self, kind: str, data: Mapping[str, Any], place: RunCursor) -> RunEvent:
        cursor = RunCursor(
            change=place.change, sent=place.sent, seqs=self._seqs, has_ended=self._has_ended
        )
        return RunEvent(cursor=str(cursor), kind=kind, data=data)

    def _drop_tail(self, job_id: JobId) -> None:
        tail = self._tails.pop(job_id, None)
        if tail is not None:
            tail.close()

    def _start(self) -> int:
        """Return the change before the first that is about the run."""
        if self._started_at is not None:
            near = _last_before(self._feed, self._started_at - MARGIN)
            first = self._first_after(near)
            if first is not None and first[1].is_start:
                return first[0] - 1
        found = self._first_after(0)
        self._is_from_snapshot = found is not None and not found[1].is_start
        return 0 if found is None else found[0] - 1

    def _first_after(self, change: int) -> tuple[int, RunChange] | None:
        for entry in self._feed.read(after=change):
            found = self._change_in(entry)
            if found is not None:
                return entry.change, found
        return None

    def _change_in(self, entry: LedgerEntry) -> RunChange | None:
        found = change_of_run(entry, self._run_id)
        for job in found.jobs if found is not None else ():
            self._phases[job.id] = phase_in(self._run_id, job.node_id)
        return found


def _last_before(feed: ChangeFeed, at: datetime) -> int:
    """Return a change after which the first one of `at` or later comes; 0 when that is the first of all."""

    def is_before(change: int) -> bool:
        entry = next(iter(feed.read(after=change)), None)
        return entry is not None and entry.at < at

    low, high = 0, 1
    while is_before(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_before(middle) else (low, middle)
    return low
