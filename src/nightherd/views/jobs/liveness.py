"""Evidence of life: what a running job last wrote into its journal and when, and how far it may go."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.errors import JournalError
from nightherd.model.index.flat_text import first_line, flat_text
from nightherd.model.index.outline import LABEL_LIMIT
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.message import result_text
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import LimitName, Used, number
from nightherd.views.costs.limits import limits_of_job
from nightherd.views.jobs.jobs import job_row, seconds_of, timestamp
from nightherd.views.jobs.rows import JobRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nightherd.model.jobs.lost import ObservedJob
    from nightherd.ports import JobReader, Journals

LOOKED_AT = 5
"""Lines at the end of a journal among which one is looked for that says something."""
SILENT = frozenset({SystemSubtype.CHECKPOINT, SystemSubtype.TOOL_PROGRESS})


class LastEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of a journal, and the last that says something."""

    at: datetime
    event: Event


class LiveJob(msgspec.Struct, frozen=True, kw_only=True):
    """A running job, and what shows that it runs."""

    job: ObservedJob
    last: LastEvent | None = None
    max_turns: int | None = None
    max_cost: int | None = None
    """Micro-dollars."""


def look_at(reader: JobReader, journals: Journals, job: ObservedJob) -> LiveJob:
    """Return the job with the end of its journal, and the limits of its last checkpoint."""
    checkpoints = reader.list_checkpoints(job.id)
    limits = limits_of_job(job, checkpoints[-1] if checkpoints else None, Used())
    most = {limit.name: limit.maximum for limit in limits}
    return LiveJob(
        job=job,
        last=_last_event(journals, job),
        max_turns=most.get(LimitName.TURNS),
        max_cost=most.get(LimitName.SPEND),
    )


def _last_event(journals: Journals, job: ObservedJob) -> LastEvent | None:
    try:
        events = journals.last(job.id, LOOKED_AT)
    except JournalError:
        return None  # `jobs show` and `doctor` report it
    if not events:
        return None
    telling = [one for one in events if not _is_silent(one)]
    at = events[-1].timestamp or job.started_at or job.created_at
    return LastEvent(at=at, event=telling[-1] if telling else events[-1])


def _is_silent(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype in SILENT


def label_of(event: Event) -> str:
    """Return what an event is, on one short line: a tool and its argument, or the beginning of a text."""
    match event:
        case ToolUseEvent(tool_name=name, input=given):
            argument = first_line(flat_text(given, LABEL_LIMIT), LABEL_LIMIT)
            return first_line(f"{name} {argument}", LABEL_LIMIT)
        case ToolResultEvent():
            return first_line(result_text(event), LABEL_LIMIT)
        case AssistantEvent(content=content, thinking=thinking):
            return first_line(content or thinking or "", LABEL_LIMIT)
        case ErrorEvent(message=message):
            return first_line(message, LABEL_LIMIT)
        case SystemEvent(content=content):
            return first_line(content or "", LABEL_LIMIT)


class LastEventRow(TypedDict):
    """The end of a journal: when it was written last, and what it says."""

    seq: int
    at: str
    age_seconds: float
    type: str
    subtype: str | None
    label: str


class LiveJobRow(TypedDict):
    """A running job, and what shows that it runs."""

    job: JobRow
    last_event: LastEventRow | None
    max_turns: int | None
    max_cost_usd: float | None


def live_job_rows(jobs: Sequence[LiveJob], now: datetime) -> list[LiveJobRow]:
    """Return running jobs as plain data."""
    return [
        {
            "job": job_row(one.job),
            "last_event": None if one.last is None else _event_row(one.last, now),
            "max_turns": one.max_turns,
            "max_cost_usd": None if one.max_cost is None else number(LimitName.SPEND, one.max_cost),
        }
        for one in jobs
    ]


def _event_row(last: LastEvent, now: datetime) -> LastEventRow:
    event = last.event
    return {
        "seq": event.seq,
        "at": timestamp(last.at),
        "age_seconds": max(seconds_of(now - last.at), 0.0),
        "type": str(type(event).__struct_config__.tag),
        "subtype": event.subtype.value if isinstance(event, SystemEvent) else None,
        "label": label_of(event),
    }
