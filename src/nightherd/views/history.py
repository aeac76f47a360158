"""What was said in a session, message by message: a page of it, or all, numbered as everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from nightherd.model.event import AssistantEvent, Event
from nightherd.model.ids import JobId
from nightherd.model.live_text import is_cut_off
from nightherd.model.message import Message, whole_messages
from nightherd.ports import Journals
from nightherd.views.conversation import Segment, count_messages

TAIL, SPARE = 2, 12
"""Events that are read for a message from the end, and for what stands after the last; mostly enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A message, its number in the conversation, and the job in whose journal it stands."""

    number: int
    job_id: JobId
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """Some messages in a row, and where the page before them ends; None when they begin with the first."""

    messages: Sequence[Spoken]
    next_before: int | None
    first: int = 1
    last: int = 0
    """The numbers that were asked for; some messages between them may be missing from the record."""
    cut_off: str | None = None
    """What had come of an answer that was cut off after the last message; only of a page that ends with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """What is left out of a conversation because a job's record is damaged."""

    job_id: JobId
    offsets: tuple[int, ...]
    """Where the lines stand in its journal that are no events, in bytes."""
    missing: int
    """Events that no readable line has."""
    is_gone: bool = False
    """Whether there is no journal at all, though the job's row says that it recorded something."""


def unreadable(journals: Journals, parts: Sequence[Segment], page: HistoryPage) -> list[Unreadable]:
    """The damage in the records that the page is from, all of them when it has nothing. Reads them whole."""
    first, last = (page.first, page.last) if page.messages else (0, count_messages(parts))
    found = []
    for part in parts:
        if part.first > last or part.last < first:
            continue
        record = journals.examine(part.job.id)
        # The row names an event after the journal has it: what the row knows of was there once.
        known = min(part.job.last_seq, part.upto if part.upto is not None else part.job.last_seq)
        missing = record.missing + max(known - record.last_seq, 0)
        if record.bad_lines or missing:
            found.append(
                Unreadable(
                    job_id=part.job.id,
                    offsets=tuple(bad.offset for bad in record.bad_lines),
                    missing=missing,
                    is_gone=record.events == 0 and not record.bad_lines,
                )
            )
    return found


def history_page(
    journals: Journals,
    parts: Sequence[Segment],
    *,
    limit: int,
    before: int | None = None,
    load_blobs: bool = False,
) -> HistoryPage:
    """The last `limit` messages, or the last before number `before`; no other is read."""
    total = count_messages(parts)
    last = total if before is None else min(before - 1, total)
    first = max(last - limit + 1, 1)
    messages: Sequence[Spoken] | None = None
    if last == total and parts and parts[-1].first <= first and parts[-1].upto is None:
        messages = _tail(journals, parts[-1], first, last, load_blobs=load_blobs)
    if messages is None:
        messages = list(messages_between(journals, parts, first, last, load_blobs=load_blobs))
    return HistoryPage(
        messages=messages,
        next_before=first if first > 1 else None,
        first=first,
        last=last,
        cut_off=_cut_off(journals, parts[-1]) if last == total and parts else None,
    )


def _cut_off(journals: Journals, part: Segment) -> str | None:
    """Return what had come of an answer that was cut off after the last message of the part."""
    if part.upto is not None:
        return None
    after = (journals.seq_of_message(part.job.id, part.messages) or 0) if part.messages else 0
    found: str | None = None
    for event in journals.read(part.job.id, after=after):
        if isinstance(event, AssistantEvent) and is_cut_off(event):
            found = event.content
    return found


def _tail(
    journals: Journals, part: Segment, first: int, last: int, *, load_blobs: bool
) -> list[Spoken] | None:
    """The messages from `first` on, read from the end backwards; None when that does not reach them."""
    wanted = last - first + 1
    events = journals.last(part.job.id, TAIL * wanted + SPARE, load_blobs=load_blobs)
    spoken = []
    for message in whole_messages(events):
        numbers = {line.message for line in message.lines}
        number = part.first - 1 + (message.last.message or 0)
        # What its beginning is missing of may stand before the first event that was read.
        is_whole = message.lines[0].index in (0, None) and len(numbers) == 1
        if first <= number <= last and is_whole:
            spoken.append(Spoken(number=number, job_id=part.job.id, message=message))
    is_all = [one.number for one in spoken] == list(range(first, last + 1))
    return spoken if is_all else None


def all_messages(journals: Journals, parts: Sequence[Segment]) -> Iterator[Spoken]:
    """Every message, first to last, whole."""
    return messages_between(journals, parts, 1, count_messages(parts), load_blobs=True)


def messages_between(
    journals: Journals, parts: Sequence[Segment], first: int, last: int, *, load_blobs: bool
) -> Iterator[Spoken]:
    """Messages `first` to `last`, of whatever jobs they are."""
    for part in parts:
        low, high = max(first, part.first), min(last, part.last)
        if low > high:
            continue
        number = low
        for message in whole_messages(_events(journals, part, low, load_blobs=load_blobs)):
            if number > high:
                break
            yield Spoken(number=number, job_id=part.job.id, message=message)
            number += 1


def _events(journals: Journals, part: Segment, first: int, *, load_blobs: bool) -> Iterator[Event]:
    """The part's events from the beginning of message `first` on."""
    skipped = first - part.first
    after = (journals.seq_of_message(part.job.id, skipped) or 0) if skipped else 0
    events = journals.read(part.job.id, after=after, load_blobs=load_blobs)
    upto = part.upto
    if upto is None:
        return events
    return takewhile(lambda event: event.seq <= upto, events)
