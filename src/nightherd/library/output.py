"""The output of a job, event by event, for programs: read it and append to it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread

from nightherd import __version__
from nightherd.engine.operations.jobs import append_output
from nightherd.errors import InvalidValueError
from nightherd.library.state import open_changes
from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, SystemEvent, payload_of
from nightherd.model.journal.system import SystemSubtype
from nightherd.views.jobs import find_job_id
from nightherd.wiring.stores import open_journals

APPENDABLE = (SystemSubtype.WARNING, SystemSubtype.TOOL_PROGRESS)
"""What a program may append of type `system`; every other subtype says what a worker did."""
FIELDS = {
    "system": {"subtype", "content", "extra"},
    "assistant": {"content", "thinking", "partial", "usage", "extra"},
    "tool_use": {"tool_name", "tool_use_id", "input", "extra"},
    "tool_result": {"tool_use_id", "result", "success", "error", "extra"},
    "error": {"message", "code", "stack", "extra"},
}
"""The fields of a message that a program may set; the journal adds number, epoch and time."""


async def read_job_output(
    state_dir: str | Path, job_id: str, *, after: int = 0, follow: bool = False
) -> AsyncIterator[Event]:
    """Every event of the job after number `after`, in order; with `follow`, also those to come, to its end.

    The job need not have begun. Leaving the iteration stops following.
    """
    journals, stopped = open_journals(Path(state_dir)), threading.Event()
    if follow:
        events = journals.follow(JobId(job_id), after=after, wait=stopped.wait, load_blobs=True)
    else:
        events = journals.read(JobId(job_id), after=after)
    try:
        while (
            event := await to_thread.run_sync(_next, events, abandon_on_cancel=True)
        ) is not None:
            yield event
            if follow and isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END:
                return
    finally:
        stopped.set()


def _next(events: Iterator[Event]) -> Event | None:
    return next(events, None)


def is_valid_job_output_input(value: object) -> bool:
    """Whether `append_job_output` accepts `value`: a mapping with one of the five types and fields that fit it."""
    try:
        _event(value)
    except InvalidValueError:
        return False
    return True


async def append_job_output(state_dir: str | Path, job: str, message: Mapping[str, Any]) -> Event:
    """Append a message to the output of a job that has not started, or has ended; return it as written.

    `message` has a `type` (system, assistant, tool_use, tool_result, error) and its fields, without a timestamp: the
    journal adds it. Without a subtype, a `system` message is a warning with the code `note`. `RefusedError` while
    a worker has the job, and while the job waits to be resumed. The agent never sees what is appended.
    """
    event, root = _event(message), Path(state_dir)
    async with open_changes(root) as record:
        job_id = find_job_id(record.reader, job)
        return await to_thread.run_sync(append_output, record, job_id, event, __version__)


def _event(value: object) -> Event:
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"a message is a mapping, not {type(value).__name__}")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise InvalidValueError(f"{kind!r} is not a message type: {', '.join(FIELDS)}")
    unknown = sorted(str(name) for name in value.keys() - FIELDS[kind] - {"type"})
    if unknown:
        names = ", ".join(sorted(FIELDS[kind]))
        raise InvalidValueError(f"a {kind} message has no field {unknown[0]!r}: {names}")
    given = {name: item for name, item in value.items() if item is not None}
    if kind == "system" and "subtype" not in given:
        note = {"code": "note", **(given.get("extra") or {})}
        given |= {"subtype": SystemSubtype.WARNING.value, "extra": note}
    try:
        event: Event = msgspec.convert(given, Event)
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"a {kind} message that does not fit: {error}") from error
    if isinstance(event, SystemEvent):
        if event.subtype not in APPENDABLE:
            allowed = ", ".join(APPENDABLE)
            raise InvalidValueError(f"a program cannot append system/{event.subtype}: {allowed}")
        payload_of(event)
    return event
