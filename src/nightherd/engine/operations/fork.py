"""Forking: a new session that begins with what another had said up to a place. Nothing is copied.

The original is not touched and need not be usable: one that has expired, is completed or in use is forked
like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

import msgspec

from nightherd.engine.contexts import Stores
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent
from nightherd.model.journal.message import Message, Speaker, open_calls
from nightherd.model.sessions.session import Session, SessionStatus
from nightherd.model.text import counted
from nightherd.model.usage import tokens_in
from nightherd.next_step import Action, NextStep
from nightherd.ports import Journals, RuntimeFork, StateReader
from nightherd.views.jobs.checkpoints import list_bookmarks
from nightherd.views.sessions.conversation import (
    Place,
    Segment,
    count_messages,
    message_at,
    messages_between,
    place_of,
    segments_of,
)

LOOK_BACK = 16
"""Events looked at first for the last turn before a place; turns are shorter, nearly always."""


class AtMessage(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """After message `number` of the conversation; 0 is before the first."""

    number: int


class AtEvent(msgspec.Struct, frozen=True, kw_only=True, tag="event"):
    """After the last message that had ended by event `seq` of a job: the session's last when none is named."""

    seq: int
    job_id: JobId | None = None


class AtCheckpoint(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoint"):
    """Where a job's checkpoint `number` points."""

    number: int
    job_id: JobId | None = None


class AtLastTurn(msgspec.Struct, frozen=True, kw_only=True, tag="last_turn"):
    """After the last turn that is complete: its answer is whole, and every call it made has a result."""


ForkAt = AtMessage | AtEvent | AtCheckpoint | AtLastTurn


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a conversation, and what it comes to up to there."""

    messages: int = 0
    turns: int = 0
    token_estimate: int = 0
    place: Place | None = None
    """Where its last message ends; None before the first."""
    before: JobId | None = None
    """The job whose first message comes next, where `place` is None."""

    @property
    def job_id(self) -> JobId | None:
        """The job that wrote the place; None when the conversation is empty."""
        return self.before if self.place is None else self.place.job_id


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that a new job begins: of which session, and where."""

    of: Session
    point: ForkPoint


def find_point(
    reader: StateReader, journals: Journals, session: Session, at: ForkAt | None = None
) -> ForkPoint:
    """The place that `at` means, else the end. `InvalidValueError` when there is no such place."""
    parts = segments_of(reader, journals, session)
    total = count_messages(parts)
    if session.imported_from is not None and not parts and session.message_count:
        raise RefusedError(
            f"the messages of session {session.id} are only in its own transcript, not in nightherd's journals",
            next_step=NextStep(Action.TAKE_OVER_SESSION, session=session.id),
        )
    number = _number(reader, journals, parts, at)
    if number == 0:
        return ForkPoint(before=parts[0].job.id if parts else None)
    place = place_of(journals, parts, number)
    before, turns, tokens = _looked_back(journals, parts, place)
    if tokens is None:
        # Nothing was reported: as large a share of the estimate as of the messages.
        tokens = session.token_estimate * number // total
    return ForkPoint(messages=number, turns=before + turns, token_estimate=tokens, place=place)


def _number(
    reader: StateReader, journals: Journals, parts: Sequence[Segment], at: ForkAt | None
) -> int:
    """The last message that a fork there begins with."""
    total = count_messages(parts)
    match at:
        case None:
            return total
        case AtLastTurn():
            return _last_complete_turn(journals, parts)
        case AtMessage(number=number):
            if not 0 <= number <= total:
                raise InvalidValueError(
                    f"there is no message {number}: the session has {counted(total, 'message')}",
                    hint=f"give a number from 0 (its beginning) to {total}",
                )
            return number
        case AtEvent(seq=seq, job_id=job_id):
            part = _part(parts, job_id)
            if not 0 <= seq <= _last_seq(journals, part):
                raise InvalidValueError(
                    f"job {part.job.id} has no event {seq}: its record ends with {_last_seq(journals, part)}",
                    next_step=NextStep(Action.SHOW_EVENTS, job=part.job.id),
                )
            return message_at(journals, parts, part.job.id, seq)
        case AtCheckpoint(number=number, job_id=job_id):
            part = _part(parts, job_id)
            bookmarks = list_bookmarks(reader, journals, part.job.id)
            for checkpoint in bookmarks:
                if checkpoint.number == number and checkpoint.seq <= _last_seq(journals, part):
                    return message_at(journals, parts, part.job.id, checkpoint.seq)
            there = f"1 to {bookmarks[-1].number}" if bookmarks else "none"
            raise InvalidValueError(
                f"job {part.job.id} has no checkpoint {number} in this session; it has {there}"
            )


def _last_complete_turn(journals: Journals, parts: Sequence[Segment]) -> int:
    """The message with which the last complete turn ends; 0 when there is none."""
    for part in reversed(parts):
        tally, ended_at = Tally(), None
        for event in journals.read(part.job.id, load_blobs=False):
            if part.upto is not None and event.seq > part.upto:
                break
            before, tally = tally, tally.add(event)
            if tally.turns != before.turns:
                ended_at = event.seq
        if ended_at is not None:
            return message_at(journals, parts, part.job.id, ended_at)
    return 0


def _part(parts: Sequence[Segment], job_id: JobId | None) -> Segment:
    for part in reversed(parts):
        if job_id is None or part.job.id == job_id:
            return part
    named = f"job {job_id} has no part in it" if job_id else "it has no messages yet"
    raise InvalidValueError(f"the session has no such position: {named}")


def _last_seq(journals: Journals, part: Segment) -> int:
    """The last event of the part that there is now."""
    if part.upto is not None:
        return part.upto
    newest = journals.last(part.job.id, 1)
    return newest[-1].seq if newest else 0


def _looked_back(
    journals: Journals, parts: Sequence[Segment], place: Place
) -> tuple[int, int, int | None]:
    """Turns of the jobs before, turns of the job up to the place, and the context last reported there.

    A call whose result is cut off counts as made: what became of it is unknown, and it is not made again.
    """
    before = 0
    for part in parts:
        if part.job.id == place.job_id:
            break
        before += _turns_in(journals, part)
    turns, tokens = _last_turn(journals, place)
    return before, turns, tokens


def _turns_in(journals: Journals, part: Segment) -> int:
    if part.upto is None and part.job.is_terminal:
        return part.job.turns
    seq = _last_seq(journals, part)
    return _last_turn(journals, Place(job_id=part.job.id, seq=seq))[0]


def _last_turn(journals: Journals, place: Place) -> tuple[int, int | None]:
    """The last turn up to the place, and the tokens last reported; no more is read than that takes."""
    reach = LOOK_BACK
    while True:
        after = max(place.seq - reach, 0)
        turns, tokens = 0, None
        for event in journals.read(place.job_id, after=after, load_blobs=False):
            if event.seq > place.seq:
                break
            turns = max(turns, event.turn or 0)
            if isinstance(event, AssistantEvent) and event.usage is not None:
                tokens = tokens_in(event.usage) or tokens
        if after == 0 or turns:
            return turns, tokens
        reach *= 4


def forked(session: Session, point: ForkPoint, *, session_id: SessionId, at: datetime) -> Session:
    """The new session: of the same agent and key as the original, and as long-lived."""
    return Session(
        id=session_id,
        agent=session.agent,
        mode=session.mode,
        status=SessionStatus.CREATED,
        runtime_type=session.runtime_type,
        working_directory=session.agent_directory,
        created_at=at,
        last_active_at=at,
        channel_id=session.channel_id,
        schedule=session.schedule,
        docker_enabled=session.docker_enabled,
        operation=session.operation,
        parent_session_id=session.id,
        base_job_id=point.place.job_id if point.place is not None else None,
        base_seq=point.place.seq if point.place is not None else None,
        base_messages=point.messages,
        base_turns=point.turns,
        max_age_s=session.max_age_s,
        max_idle_s=session.max_idle_s,
        turn_count=point.turns,
        message_count=point.messages,
        token_estimate=point.token_estimate,
    )


NOTICE_LOOK_BACK = 32
"""Messages before the cut that are looked at; the calls of one answer are fewer, nearly always."""


def with_notice(
    prompt: str, agent: Agent, session: Session, fork: RuntimeFork | None, context: Stores
) -> str:
    """The prompt, and what the runtime that begins with `fork` would not know: before it what was asked right before
    the cut, after it what became of calls that were cut off. The outcome is unknown, and no call is repeated."""
    if not agent.runtime.keeps_transcript or session.base_messages == 0:
        return prompt  # the others read it off the record
    if fork is not None and fork.at_uuid is None:
        return prompt  # it begins with all of the session, and is told what that lacks when it does
    parts = segments_of(context.reader, context.journals, session)
    last = min(session.base_messages, count_messages(parts))
    first = max(last - NOTICE_LOOK_BACK + 1, 1)
    spoken = [
        one.message
        for one in messages_between(context.journals, parts, first, last, load_blobs=False)
    ]
    asked = _asked_last(spoken)
    if asked:
        text = "\n\n".join(message.text for message in asked)
        return f"(You were asked before, and had not answered yet:)\n\n{text}\n\n{prompt}"
    calls = open_calls(spoken).values()
    if not calls:
        return prompt
    names = ", ".join(call.tool_name for call in calls)
    return (
        f"{prompt}\n\n(The conversation was cut right after you had called: {names}. The outcome is unknown: "
        "look before you do it again.)"
    )


def _asked_last(spoken: Sequence[Message]) -> list[Message]:
    """The questions at the end that have no name of the runtime's own: it cannot begin after them."""
    nameless = takewhile(
        lambda message: message.speaker is Speaker.USER and message.last.uuid is None,
        reversed(spoken),
    )
    return list(nameless)[::-1]
