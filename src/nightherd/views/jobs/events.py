"""A job's events as surfaces show them: read from the record, followed to the end, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.errors import JournalError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import Event, FullOutput, SystemEvent, ToolResultEvent
from nightherd.model.journal.live_text import TextDelta, is_about_answer
from nightherd.model.journal.settings_ref import settings_ref
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import JobReader, Journals, Tail, TextTail

Wait = Callable[[], None]
"""Returns after a moment, or when there may be something new."""


def event_document(event: Event) -> dict[str, Any]:
    """An event exactly as its journal line says it."""
    document = msgspec.to_builtins(event)
    if not isinstance(document, dict):
        raise TypeError(f"an event is an object, not {type(document).__name__}")
    return document


def with_full_output(journals: Journals, event: Event) -> Event:
    """The event with the whole text of an output of which its result has only the ends."""
    output = event.full_output if isinstance(event, ToolResultEvent) else None
    if output is None:
        return event
    text = journals.read_output(output)
    whole: Event = replace(event, full_output=replace(output, text=text))
    return whole


def whole_event(journals: Journals, event: Event) -> Event:
    """The event with everything that it only names: the text of an output, the settings of an execution.

    Settings that cannot be read stay away; `doctor --verify` reports them.
    """
    if not isinstance(event, SystemEvent) or event.subtype is not SystemSubtype.EXECUTION_STARTED:
        return with_full_output(journals, event)
    ref = settings_ref(event.extra)
    if ref is None:
        return event
    try:
        text = journals.read_output(FullOutput(sha256=ref.sha256, size=ref.size))
    except JournalError:
        return event
    whole = msgspec.to_builtins(replace(ref, text=text))
    named: Event = replace(event, extra={**(event.extra or {}), "settings": whole})
    return named


def read_events(journals: Journals, job_id: JobId, *, last: int | None = None) -> Iterator[Event]:
    """The job's events in order, or only the last so many."""
    return iter(journals.last(job_id, last)) if last is not None else journals.read(job_id)


def follow_output(
    journals: Journals,
    reader: JobReader,
    job_id: JobId,
    *,
    last: int | None,
    wait: Wait,
    on_wait: Callable[[Job], None] = lambda job: None,
) -> Iterator[Event | TextDelta]:
    """The job's events as they are written, across restarts of its worker, until the job has ended.

    Begins with the last so many (all when None). Nothing is missed and nothing is given twice. Between the events
    comes the text of answers as it streams in; a piece whose answer was given is left out. `on_wait` is called
    with the job's row before each wait for more.
    """
    seen = answered = 0
    for event in journals.last(job_id, last) if last is not None else ():
        seen = event.seq
        answered = event.seq if is_about_answer(event) else answered
        yield event
        if _is_end(event):
            return
    tail, text = journals.follower(job_id, after=seen), journals.text_follower(job_id)
    try:
        yield from _follow(tail, text, answered, partial(_look, reader, job_id, wait, on_wait))
    finally:
        tail.close()
        text.close()


def _look(reader: JobReader, job_id: JobId, wait: Wait, on_wait: Callable[[Job], None]) -> bool:
    """Return whether the job is over by its row; else wait a moment first."""
    job = reader.find_job(job_id)
    if job is None or job.is_terminal:
        return True
    on_wait(job)
    wait()
    return False


def _follow(
    tail: Tail, text: TextTail, answered: int, is_over: Callable[[], bool]
) -> Iterator[Event | TextDelta]:
    is_last_look = False
    while True:
        while events := tail.poll():
            for event in events:
                answered = event.seq if is_about_answer(event) else answered
                yield event
                if _is_end(event):
                    return
        # The job's end is in the journal before it is in its row: once the row says it is over, one more
        # look at the journal sees everything.
        if is_last_look:
            return
        yield from (delta for delta in text.poll() if delta.after >= answered)
        is_last_look = is_over()


def _is_end(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
