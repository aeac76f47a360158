"""A session's conversation: what was said in it, over all its jobs and what it was forked from.

Messages are numbered from 1 over the whole conversation: each thing asked, each answer, each tool result is
one. Nothing here reads more than it is asked for: rows say how many messages a job has, and journals find
one by number without reading the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nightherd.errors import AmbiguousIdError, InvalidValueError, SessionNotFoundError
from nightherd.model.event import Event, is_appended
from nightherd.model.ids import JobId, SessionId
from nightherd.model.job import Job
from nightherd.model.session import Session
from nightherd.model.text import counted
from nightherd.ports import Journals, StateReader

DEEPEST = 1_000
"""Forks of forks; beyond this somebody's rows go round in a circle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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
            f"session {session.id} was forked from {session.parent_session_id}, which is not there"
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
            f"there is no session {reference or repr(reference)}", hint="nightherd session list"
        )
    raise AmbiguousIdError(
        f"{reference!r} could be {', '.join(found[:5])}", hint="give more characters of the id"
    )
