"""The past of a command: what earlier runs of its job left on record, and so whether it may run now."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.repeat import is_interrupted_call
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent

NOT_STARTED = "not_started"
"""In `extra` of a result: the command was never started, so it may be."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a job so far."""

    calls: int = 0
    waiting: ToolUseEvent | None = None
    """The call that a person is asked about: it has not begun, and is the one to be made."""
    is_interrupted: bool = False
    """Whether the command may have run, and how far is unknown. A later call that was not started changes nothing."""
    ended: ToolResultEvent | None = None
    """The result of a command that came to its end, or that a person does not want run: it is not run again."""


def call_id(job_id: JobId, number: int) -> str:
    """Return the id of the job's call with this number, counted from 1."""
    return f"{_prefix(job_id)}{number}"


def read_past(events: Iterable[Event], job_id: JobId, waiting: Collection[str]) -> Past:
    """Return the calls that this job has made; `waiting` are those that a person is asked about."""
    calls: dict[str, ToolUseEvent] = {}
    open_calls: dict[str, ToolUseEvent] = {}
    is_interrupted, ended = False, None
    for event in events:
        match event:
            case ToolUseEvent(tool_use_id=str(call)) if call.startswith(_prefix(job_id)):
                calls[call] = open_calls[call] = event
            case ToolResultEvent(tool_use_id=str(call)) if open_calls.pop(call, None) is not None:
                if is_interrupted_call(event.error):
                    is_interrupted = True
                elif NOT_STARTED not in (event.extra or {}):
                    ended = event
            case _:
                pass
    asked = [use for call, use in open_calls.items() if call in waiting]
    return Past(
        calls=len(calls),
        waiting=asked[-1] if asked else None,
        is_interrupted=is_interrupted or len(open_calls) > len(asked),
        ended=ended,
    )


def _prefix(job_id: JobId) -> str:
    return f"toolu_{job_id}_"
