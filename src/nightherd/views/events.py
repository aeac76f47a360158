"""A job's events as surfaces show them: read from the record, followed to the end, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.event import Event, SystemEvent, ToolResultEvent
from nightherd.model.ids import JobId
from nightherd.model.job import Job
from nightherd.model.system import SystemSubtype
from nightherd.ports import JobReader, Journals

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


def read_events(journals: Journals, job_id: JobId, *, last: int | None = None) -> Iterator[Event]:
    """The job's events in order, or only the last so many."""
    return iter(journals.last(job_id, last)) if last is not None else journals.read(job_id)


def follow_events(
    journals: Journals,
    reader: JobReader,
    job_id: JobId,
    *,
    last: int | None,
    wait: Wait,
    on_wait: Callable[[Job], None] = lambda job: None,
) -> Iterator[Event]:
    """The job's events as they are written, across restarts of its worker, until the job has ended.

    Begins with the last so many (all when None). Nothing is missed and nothing is given twice. `on_wait` is
    called with the job's row before each wait for more.
    """
    seen = 0
    for event in journals.last(job_id, last) if last is not None else ():
        seen = event.seq
        yield event
        if _is_end(event):
            return
    is_over = False

    def wait_or_stop(_: float) -> bool:
        # The job's end is in the journal before it is in its row: once the row says it is over, one more
        # look at the journal sees everything.
        nonlocal is_over
        if is_over:
            return True
        job = reader.find_job(job_id)
        is_over = job is None or job.is_terminal
        if job is not None and not is_over:
            on_wait(job)
            wait()
        return False

    for event in journals.follow(job_id, after=seen, wait=wait_or_stop):
        yield event
        if _is_end(event):
            return


def _is_end(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
