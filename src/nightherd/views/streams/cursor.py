"""The cursor of the stream of a fleet: the last change of the ledger that was sent, and the last event of each followed job.

Everything a client has is in its cursor, so the server keeps nothing about it and may be killed at any time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId, parse_job_id
from nightherd.ports import LedgerEntry

JOB = "job-"
"""What every job id begins with; cursors leave it out."""
LONGEST = 4_096
PLACE = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?(?:-([0-9a-f]{5}))?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the ledger: everything up to and including `change` was sent, of itself as far as `sent`."""

    change: int = 0
    sent: int | None = None
    """The index of the last row of the change that was sent; None for all of them."""
    mark: str = ""
    """Tells the change from one of the same number in another ledger."""

    def __str__(self) -> str:
        text = f"{self.change}" if self.sent is None else f"{self.change}.{self.sent}"
        return f"{text}-{self.mark}" if self.mark else text

    @property
    def read_after(self) -> int:
        """The change after which a reader finds all that follows this place."""
        return self.change if self.sent is None else self.change - 1

    def is_before(self, change: int, index: int) -> bool:
        """Whether a row of a change comes after this place."""
        if change != self.change:
            return change > self.change
        return self.sent is not None and index > self.sent


class StreamCursor(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has. As text: `1041-3fa07`, or `1041.16-3fa07,2026-11-18-abc123:17`."""

    place: Place
    seqs: Mapping[JobId, int] = msgspec.field(default_factory=dict)
    """By followed job, its last event that was sent."""

    def __str__(self) -> str:
        jobs = (f"{job_id.removeprefix(JOB)}:{seq}" for job_id, seq in self.seqs.items())
        return ",".join([str(self.place), *jobs])


def parse_stream_cursor(text: str) -> StreamCursor:
    """Return the cursor that `text` is; `InvalidValueError` when it is none."""
    place, *parts = text[: LONGEST + 1].split(",")
    found = PLACE.fullmatch(place)
    if found is None or len(text) > LONGEST or not text.isascii():
        raise _no_cursor(text)
    seqs = {}
    for part in parts:
        job, _, seq = part.partition(":")
        if not (seq.isdecimal() and len(seq) <= 15):
            raise _no_cursor(text)
        try:
            seqs[parse_job_id(JOB + job)] = int(seq)
        except InvalidValueError as error:
            raise _no_cursor(text) from error
    change, sent, mark = found.groups()
    return StreamCursor(
        place=Place(change=int(change), sent=None if sent is None else int(sent), mark=mark or ""),
        seqs=seqs,
    )


def mark_of(entry: LedgerEntry) -> str:
    """Return what tells a change from one of the same number in another ledger: the end of its time."""
    return f"{(entry.at - EPOCH) // MICROSECOND & 0xFFFFF:05x}"


def _no_cursor(text: str) -> InvalidValueError:
    return InvalidValueError(f"{text[:100]!r} is not the id of an event of the stream")
