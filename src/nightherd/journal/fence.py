"""Fence: which lines of a journal count, decided from the lines alone (INV-FENCE).

A file append cannot ask the database who owns the job, so any number of writers may leave lines. The order
of the bytes decides: a line counts when no line before it has a higher epoch and its number is beyond the
last one that counted. Every reader applies this rule, and every writer checks after each append that its
line counts, so what was acknowledged is exactly what readers see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightherd.model.journal.event import VERSION, Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import BadLine, Findings


class Fence:
    """One pass over a journal's lines, in order. Holds where it stands and counts what did not count."""

    __slots__ = ("bad", "epoch", "events", "fenced", "missing", "repeated", "seq", "torn")

    def __init__(self, *, epoch: int = 0, seq: int = 0) -> None:
        self.epoch = epoch
        self.seq = seq
        self.events = 0
        self.fenced = 0
        self.repeated = 0
        self.missing = 0
        self.torn = 0
        self.bad: dict[int, BadLine] = {}

    def admit_plain(self, events: Sequence[Event]) -> bool:
        """Admit all of these at once if nothing about them is special; else admit none and say so."""
        # The first of them may raise the fence: so does the first line of every journal.
        epoch, seq = max([self.epoch, *(event.epoch for event in events[:1])]), self.seq
        torn_tail = SystemSubtype.TORN_TAIL
        for event in events:
            seq += 1
            if event.seq != seq or event.epoch != epoch or event.v != VERSION:
                return False
            # What is left of its fragment may be blank, and so no line at all: it can stand anywhere.
            if type(event) is SystemEvent and event.subtype is torn_tail:
                return False
        self.epoch, self.seq = epoch, seq
        self.events += len(events)
        return True

    def admit(self, line: Event | BadLine) -> bool:
        """Whether this line counts, given all that came before."""
        if isinstance(line, BadLine):
            self.bad[line.offset] = line
            return False
        if line.epoch < self.epoch:
            self.fenced += 1
            return False
        # A higher epoch raises the fence even when its number turns out to be taken.
        self.epoch = line.epoch
        if line.seq <= self.seq:
            self.repeated += 1
            return False
        self.missing += line.seq - self.seq - 1
        self.seq = line.seq
        self.events += 1
        if _is_torn_tail(line):
            self.torn += 1
            # The fragment is kept in this event: what is left of it in the file is accounted for.
            self.bad.pop((line.extra or {}).get("offset", -1), None)
        return True

    def findings(self) -> Findings:
        """What this pass came across, as a value."""
        return Findings(
            events=self.events,
            last_seq=self.seq,
            epoch=self.epoch,
            fenced=self.fenced,
            repeated=self.repeated,
            missing=self.missing,
            torn=self.torn,
            bad_lines=tuple(self.bad.values()),
        )


def _is_torn_tail(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.TORN_TAIL


def find_anchor(lines: Iterable[tuple[int, Event | BadLine]]) -> tuple[int, Event] | None:
    """The first line that surely counts, and its offset, without knowing what came before these lines.

    A writer appends a second line only after it saw its first one count, or learned there what the next
    number is. So of two neighbouring lines with one epoch and consecutive numbers, the second counts:
    nothing stands between them that could have raised the fence or taken the number.
    """
    before: Event | None = None
    for offset, line in lines:
        if isinstance(line, BadLine):
            before = None
            continue
        if before is not None and (before.epoch, before.seq + 1) == (line.epoch, line.seq):
            return offset, line
        before = line
    return None
