"""Pages of a job's events: after, before or around one of them. A page costs the same in a journal of any length."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, takewhile

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event
from nightherd.ports import Journals


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order, without the bodies that are stored beside the journal, and what lies around them."""

    events: Sequence[Event]
    has_before: bool
    """Whether the journal has an earlier event."""
    has_after: bool
    """Whether it has a later one by now."""
    start: int = 0
    """The number that the page comes after: where an empty page would continue."""

    @property
    def first_seq(self) -> int | None:
        """The number of the first event; None on an empty page."""
        return self.events[0].seq if self.events else None

    @property
    def last_seq(self) -> int:
        """The number of the last event: the `after` of the next page."""
        return self.events[-1].seq if self.events else self.start


def page_after(journals: Journals, job_id: JobId, after: int, limit: int) -> EventPage:
    """Return the first `limit` events that come after the number `after`."""
    events = list(islice(journals.read(job_id, after=after, load_blobs=False), limit + 1))
    first = next(iter(journals.read(job_id, load_blobs=False)), None) if after > 0 else None
    return EventPage(
        events=events[:limit],
        has_before=first is not None and first.seq <= after,
        has_after=len(events) > limit,
        start=after,
    )


def page_before(journals: Journals, job_id: JobId, before: int, limit: int) -> EventPage:
    """Return the last `limit` events that come before the number `before`; it may lie beyond the end."""
    newest = _newest(journals, job_id)
    end = min(before, newest + 1)
    span = limit + 1
    while True:
        start = max(0, end - 1 - span)
        # Numbers have no gaps but where a journal is damaged: then a longer stretch has enough events.
        read = journals.read(job_id, after=start, load_blobs=False)
        kept = deque(takewhile(lambda event: event.seq < end, read), maxlen=limit + 1)
        if len(kept) > limit or start == 0:
            break
        span *= 4
    return EventPage(
        events=list(kept)[-limit:],
        has_before=len(kept) > limit,
        has_after=end <= newest,
    )


def page_around(journals: Journals, job_id: JobId, seq: int, limit: int) -> EventPage:
    """Return `limit` events with the event `seq` in their middle, or as near to it as the ends allow."""
    latest_start = _newest(journals, job_id) - limit
    return page_after(journals, job_id, max(0, min(seq - 1 - limit // 2, latest_start)), limit)


def _newest(journals: Journals, job_id: JobId) -> int:
    newest = journals.last(job_id, 1)
    return newest[-1].seq if newest else 0
