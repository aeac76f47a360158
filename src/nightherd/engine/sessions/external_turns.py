"""External turns: what was added to a session outside nightherd, separated from what its jobs said.

A runtime's own memory holds both. What is in it and not in the journal was added outside nightherd, unless it is what a job of
ours had asked and was not answered, or was cut off from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import Stores
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import NightherdError
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.changes import LoseExecution
from nightherd.model.jobs.decisions import is_last_loss
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    MessageEvent,
    SystemEvent,
    by_hand,
    is_message,
)
from nightherd.model.journal.recollection import Recollection
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.session import Session
from nightherd.ports import Journals, StateReader
from nightherd.views.sessions.conversation import Segment, events_of, segments_of

RETOLD = "claude"
"""The worker of jobs that only retell what a transcript says."""

NOTICES = ("<command-", "<local-command-", "[Request interrupted by user")
"""How lines begin that Claude puts in for its user; no person wrote them."""

LOOK_BACK = 64
"""Events of a job that are looked at for the last thing said; mostly it is among them."""


class OnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What of a conversation is on record."""

    uuids: frozenset[str]
    """By the runtime's own names."""
    unanswered: tuple[str, ...]
    """What was asked after the last thing that has such a name."""


def on_record(reader: StateReader, journals: Journals, sessions: Iterable[Session]) -> OnRecord:
    """What is on record of one of the runtime's conversations, in whichever of our sessions."""
    uuids: set[str] = set()
    unanswered: list[str] = []
    for session in {one.id: one for one in sessions}.values():
        parts = segments_of(reader, journals, session)
        for event in events_of(journals, parts, load_blobs=False):
            if event.uuid is not None:
                if is_message(event):
                    uuids.add(event.uuid)
                    unanswered.clear()
            elif isinstance(event, SystemEvent) and event.subtype is SystemSubtype.USER_INPUT:
                unanswered.append(event.content or "")
    return OnRecord(uuids=frozenset(uuids), unanswered=tuple(unanswered))


def is_recorded(uuid: str, parts: Sequence[Segment], journals: Journals) -> bool:
    """Whether the last thing the runtime has is the last one on record; only the ends are looked at."""
    for part in reversed(parts):
        if part.upto is not None:
            return False
        named = [event.uuid for event in journals.last(part.job.id, LOOK_BACK) if event.uuid]
        if named:
            return uuid in named
    return False


def external_events(
    events: Iterable[Event], known: OnRecord, secrets: Secrets, *, is_ours: bool
) -> Iterator[Event]:
    """Of what a transcript has and the record lacks, what no job of ours asked for; masked.

    `is_ours` says whose the first of it is, before anything is asked.
    """
    for event, belongs_to_job in _attributed(events, known, secrets, is_ours=is_ours):
        if not belongs_to_job:
            yield event


def _attributed(
    events: Iterable[Event], known: OnRecord, secrets: Secrets, *, is_ours: bool
) -> Iterator[tuple[Event, bool]]:
    """Each event, masked, and whether it belongs to what a job of ours asked for."""
    for event in events:
        masked = secrets.mask_event(event)
        if isinstance(masked, SystemEvent):
            is_ours = _is_ours(masked.content or "", known, is_ours=is_ours)
        yield masked, is_ours


def _is_ours(question: str, known: OnRecord, *, is_ours: bool) -> bool:
    if question.startswith(NOTICES):
        return is_ours
    # A notice may stand before and after what was asked (fork_notice.py, runtimes/claude/opening.py).
    return any(
        question == asked
        or question.startswith(f"{asked}\n\n")
        or question.endswith(f"\n\n{asked}")
        or f"\n\n{asked}\n\n" in question
        for asked in known.unanswered
        if asked
    )


class Unrecorded(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime's conversation holds and the record lacks."""

    answers: Sequence[MessageEvent] = ()
    """Answers and results of the last job: the runtime received them after the job was stopped."""
    by_hand: Sequence[MessageEvent] = ()
    """Prompts that were added outside nightherd, with their answers; marked as such."""


NOTHING_UNRECORDED = Unrecorded()


def find_unrecorded(session: Session, runtime_session_id: str, context: Stores) -> Unrecorded:
    """Return what the runtime's conversation holds besides what is on record of `session`.

    Costs a look at two ends when there is nothing. What cannot be read is not recorded, and stops nothing.
    """
    reader, journals, transcripts = context.reader, context.journals, context.transcripts
    if not transcripts.covers(session.runtime_type):
        return NOTHING_UNRECORDED
    try:
        last = transcripts.last_said(runtime_session_id, session.working_directory)
        if last is None:
            return NOTHING_UNRECORDED
        parts = segments_of(reader, journals, session)
        if is_recorded(last, parts, journals):
            return NOTHING_UNRECORDED
        known = on_record(reader, journals, [session])
        if last in known.uuids:
            return NOTHING_UNRECORDED
        found = transcripts.said_since(
            runtime_session_id, session.working_directory, known.uuids, with_cost=True
        )
    except (OSError, NightherdError):
        return NOTHING_UNRECORDED
    spoken = [part for part in parts if part.messages]
    is_ours = bool(spoken) and spoken[-1].job.worker != RETOLD
    answers: list[MessageEvent] = []
    typed: list[MessageEvent] = []
    for event, belongs_to_job in _attributed(found, known, context.secrets, is_ours=is_ours):
        if isinstance(event, ErrorEvent):
            continue
        if not belongs_to_job:
            typed.append(by_hand(event))
        elif isinstance(event, SystemEvent):
            answers.clear()  # what was said before this was asked is not an answer to it
        else:
            answers.append(event)
    return Unrecorded(answers=answers, by_hand=typed)


class LateAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to be written into the journal of a job that has ended."""

    events: Sequence[MessageEvent]
    before: Tally
    """What the journal comes to without them."""


def placed(
    answers: Sequence[MessageEvent], last_turn: int, *, is_paid: bool = False
) -> Iterator[MessageEvent]:
    """The answers with the turns that follow `last_turn`; without their cost when that `is_paid` already."""
    for event in answers:
        turn = last_turn + (event.turn or 0)
        numbered: MessageEvent = msgspec.structs.replace(event, turn=turn or None)
        if is_paid and isinstance(numbered, AssistantEvent):
            numbered = msgspec.structs.replace(numbered, usage=None)
        yield numbered


def count_late_answers(
    job: Job, known: Recollection, change: LoseExecution, record: RepairContext
) -> tuple[LoseExecution, LateAnswers | None]:
    """Return the change with everything counted, and what is to be written once it is applied.

    Nothing for a job that continues: its next execution records the answers.
    """
    session_id = known.tally.runtime_session_id or job.runtime_session_id
    session = record.reader.find_session(job.session_id) if job.session_id is not None else None
    if session_id is None or session is None or not is_last_loss(job, change):
        return change, None
    found = find_unrecorded(session, session_id, record).answers
    if not found:
        return change, None
    turns = (event.turn or 0 for event in record.journals.read(job.id, load_blobs=False))
    events = list(placed(found, max(turns, default=0)))
    after = known.tally
    for event in events:
        after = after.add(event)
    change = replace(change, total=after.totals, own=replace(known, tally=after).own)
    return change, LateAnswers(events=events, before=known.tally)


def write_late_answers(job: Job, late: LateAnswers, record: RepairContext) -> None:
    """Write them into the journal of the job, which has ended and has no worker."""
    recorder = Recorder(record.secrets, _no_listener)
    execution = generate_execution_id(job.id, job.epoch)
    with recorder.into(record.journals.open(job.id, epoch=job.epoch, execution=execution)):
        recorder.tally = late.before
        for event in late.events:
            recorder.record(event)


def _no_listener(event: Event) -> None:
    """Ignore the event: a job that has ended is not followed."""
