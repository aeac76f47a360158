"""Late answers: what the runtime of a lost execution received after its worker had died.

They are in the runtime's own transcript and in no journal. A job that continues records them when its next execution
begins (beginning.py). A job that ends with its rescue has no next execution: its rescuer counts them in the change
that ends it, and writes them into the journal once that change is applied, so that of several rescuers one does.

A late answer never completes its job, even if its `stop_reason` is `end_turn`: the model is asked once more. The
transcript says that an answer has ended, not that the run has. Before its result, which is in no transcript, Claude
may still run `Stop` hooks that make it continue, take queued messages and wait for background tasks; these died
with the process, and the model has to be told. A job that is called completed too early is a lie that nobody
notices; one more request about a conversation that is mostly cached is small and on record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from nightherd.engine.hand_turns import find_unrecorded
from nightherd.engine.record import Record
from nightherd.engine.recorder import Recorder
from nightherd.model.change import LoseExecution
from nightherd.model.decisions.jobs import is_last_loss
from nightherd.model.event import AssistantEvent, Event, MessageEvent
from nightherd.model.ids import generate_execution_id
from nightherd.model.job import Job
from nightherd.model.outcome import Tally
from nightherd.model.recollection import Recollection
from nightherd.model.replace import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class LateAnswers:
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
    job: Job, known: Recollection, change: LoseExecution, record: Record
) -> tuple[LoseExecution, LateAnswers | None]:
    """Return the change with everything counted, and what is to be written once it is applied.

    Nothing for a job that continues: whoever continues it records the answers.
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


def write_late_answers(job: Job, late: LateAnswers, record: Record) -> None:
    """Write them into the journal of the job, which has ended and is nobody's any more."""
    recorder = Recorder(record.secrets, _no_listener)
    execution = generate_execution_id(job.id, job.epoch)
    with recorder.into(record.journals.open(job.id, epoch=job.epoch, execution=execution)):
        recorder.tally = late.before
        for event in late.events:
            recorder.record(event)


def _no_listener(event: Event) -> None:
    """Nobody follows a job that has ended."""
