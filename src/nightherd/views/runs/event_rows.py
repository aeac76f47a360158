"""The shapes of a run's events in pages, by their type."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from nightherd.views.jobs.event_bodies import EventRow
from nightherd.views.runs.changes import ItemEvent, NodeEvent, RunChangeEvent


class JobEvent(TypedDict):
    """An event of one of a run's jobs, as its journal has it."""

    job_id: str
    phase: str
    event: EventRow


class NodeEventRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="node"):
    """A phase changed."""

    id: str
    data: NodeEvent


class ItemEventRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="inbox"):
    """A gate was opened or answered, or a failed run asks what to do."""

    id: str
    data: ItemEvent


class RunChangeEventRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="run"):
    """The run changed."""

    id: str
    data: RunChangeEvent


class JobEventRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="job"):
    """A job of the run recorded an event."""

    id: str
    data: JobEvent


RunEventRow = NodeEventRow | ItemEventRow | RunChangeEventRow | JobEventRow
"""One event of a run; `id` is the cursor of what follows it."""
