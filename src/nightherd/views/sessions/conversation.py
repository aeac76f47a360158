"""A session's conversation: what was said in it, over all its jobs and what it was forked from.

Messages are numbered from 1 over the whole conversation: each thing asked, each answer, each tool result is
one. Nothing here reads more than it is asked for: rows say how many messages a job has, and journals find
one by number without reading the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec

from nightherd.errors import AmbiguousIdError, InvalidValueError, SessionNotFoundError
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import AssistantEvent, Event, is_appended
from nightherd.model.journal.live_text import is_cut_off
from nightherd.model.journal.message import Message, whole_messages
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.next_step import Action, NextStep
from nightherd.ports import Journals, StateReader

DEEPEST = 1_000
"""Forks of forks; beyond this the rows form a cycle."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One job's part of a conversation."""

    job: Job
    first: int
    """The number of its first message."""
    messages: int
    upto: int | None = None
    """The last event that belongs to it; None for all of the job."""

    @property
    def last(self) -> int:
        """The number of its last message."""
        return self.first + self.messages - 1


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message ends: in which job's journal, at which event."""

    job_id: JobId
    seq: int


def segments_of(reader: StateReader, journals: Journals, session: Session) -> list[Segment]:
    """The parts of the conversation, first to last: what it was forked from, then its own jobs."""
    return _own_and_inherited(reader, journals, session, depth=0)


def _inherited(
    reader: StateReader, journals: Journals, session: Session, *, depth: int
) -> list[Segment]:
    """The parts of its ancestors that a fork begins with."""
    if session.parent_session_id is None or session.base_messages == 0:
        return []
    parent = reader.find_session(session.parent_session_id)
    if parent is None or depth > DEEPEST:
        raise SessionNotFoundError(
            f"session {session.id} was forked from {session.parent_session_id}, which does not exist"
        )
    kept: list[Segment] = []
    for part in _own_and_inherited(reader, journals, parent, depth=depth + 1):
        left = session.base_messages - part.first + 1
        if left <= 0:
            break
        is_cut = part.job.id == session.base_job_id
        upto = session.base_seq if is_cut else part.upto
        kept.append(
            Segment(job=part.job, first=part.first, messages=min(part.messages, left), upto=upto)
        )
        if is_cut:
            break
    return kept


def _own_and_inherited(
    reader: StateReader, journals: Journals, session: Session, *, depth: int
) -> list[Segment]:
    parts = _inherited(reader, journals, session, depth=depth)
    first = session.base_messages + 1
    for job in reader.jobs_of_session(session.id):
        count = messages_in(journals, job)
        parts.append(Segment(job=job, first=first, messages=count))
        first += count
    return parts


def messages_in(journals: Journals, job: Job) -> int:
    """How many messages the job has had; its row knows once it has stopped, its journal before."""
    if job.is_terminal:
        return job.messages
    known, step = job.messages, 1
    while journals.seq_of_message(job.id, known + step) is not None:
        known, step = known + step, 2 * step
    while step > 1:
        step //= 2
        if journals.seq_of_message(job.id, known + step) is not None:
            known += step
    return known


def count_messages(parts: Sequence[Segment]) -> int:
    """How many messages the conversation has."""
    return parts[-1].last if parts else 0


def place_of(journals: Journals, parts: Sequence[Segment], message: int) -> Place:
    """Where message `message` ends. `InvalidValueError` when there is no such message."""
    total = count_messages(parts)
    for part in parts:
        if part.first <= message <= part.last:
            seq = journals.seq_of_message(part.job.id, message - part.first + 1)
            if seq is not None:
                return Place(job_id=part.job.id, seq=seq)
    raise InvalidValueError(
        f"there is no message {message}: the session has {counted(total, 'message')}"
    )


def message_at(journals: Journals, parts: Sequence[Segment], job_id: JobId, seq: int) -> int:
    """How many messages of the conversation have ended with event `seq` of that job's journal."""
    for part in parts:
        if part.job.id == job_id:
            return part.first - 1 + _ended_by(journals, part, seq)
    raise InvalidValueError(f"job {job_id} has no part in this session")


def _ended_by(journals: Journals, part: Segment, seq: int) -> int:
    """The last message of the part that ends at or before `seq`, found by halving."""
    low, high = 0, part.messages
    while low < high:
        middle = (low + high + 1) // 2
        ends = journals.seq_of_message(part.job.id, middle)
        if ends is not None and ends <= seq:
            low = middle
        else:
            high = middle - 1
    return low


def events_of(
    journals: Journals, parts: Sequence[Segment], *, load_blobs: bool = True
) -> Iterator[Event]:
    """Every event of the conversation, first to last; what programs appended is no part of it."""
    for part in parts:
        for event in journals.read(part.job.id, load_blobs=load_blobs):
            if part.upto is not None and event.seq > part.upto:
                break
            if event.extra is None or not is_appended(event):
                yield event


def find_session_id(reader: StateReader, reference: str) -> SessionId:
    """The one session that `reference` means: our id or the runtime's, or a unique prefix of one."""
    session = reader.find_session(SessionId(reference))
    if session is not None:
        return session.id
    # Nothing at all, as an unset variable of a script gives it, means no session.
    found = reader.session_ids(reference, 6) if reference else []
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionNotFoundError(
            f"there is no session {reference or repr(reference)}",
            next_step=NextStep(Action.LIST_SESSIONS),
        )
    raise AmbiguousIdError(
        f"{reference!r} could be {', '.join(found[:5])}", hint="give more characters of the id"
    )


TAIL, SPARE = 2, 12
"""Events that are read for a message from the end, and for what stands after the last; mostly enough."""


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """A message, its number in the conversation, and the job in whose journal it stands."""

    number: int
    job_id: JobId
    message: Message


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages in a row, and where the page before them ends; None when they begin with the first."""

    messages: Sequence[Spoken]
    next_before: int | None
    first: int = 1
    last: int = 0
    """The numbers that were asked for; some messages between them may be missing from the record."""
    cut_off: str | None = None
    """What had come of an answer that was cut off after the last message; only of a page that ends with it."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
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
