"""Changes of work items: each step of a claim is noted once, by the process that has it in hand."""

from __future__ import annotations

from datetime import datetime

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.work.item import WorkId, WorkItem, WorkOutcome, WorkStatus
from nightherd.model.work.source import SourceState


class ReserveWork(msgspec.Struct, frozen=True, kw_only=True):
    """Take an issue for this fleet. Refused while it is taken, and before it may be taken again.

    With `is_asked` a person wants it now, so that it need not wait.
    """

    item: WorkItem
    is_asked: bool = False


class StepWork(msgspec.Struct, frozen=True, kw_only=True):
    """Write to the tracker for an item until `until`: no other process does meanwhile."""

    id: WorkId
    claim: str
    by: str
    at: datetime
    until: datetime


class HoldWork(msgspec.Struct, frozen=True, kw_only=True):
    """The issue is this fleet's: its job may start."""

    id: WorkId
    claim: str
    at: datetime
    title: str


class LoseWork(msgspec.Struct, frozen=True, kw_only=True):
    """Another fleet has the issue."""

    id: WorkId
    claim: str
    at: datetime
    not_before: datetime
    reason: str


class StartWork(msgspec.Struct, frozen=True, kw_only=True):
    """The issue of a new job; part of what records the job.

    The issue is held for it, or was the issue of the ended job `after`, which the new one does once more.
    """

    id: WorkId
    claim: str
    after: JobId | None = None


class EndWork(msgspec.Struct, frozen=True, kw_only=True):
    """The claim is over; the tracker is to be told. An item that has a job needs that job to have ended."""

    id: WorkId
    claim: str
    at: datetime
    outcome: WorkOutcome


class NoteWork(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was taken on the tracker, or failed. What is None stays as it was."""

    id: WorkId
    claim: str
    by: str
    at: datetime
    is_labelled: bool | None = None
    is_told: bool | None = None
    is_relabelled: bool | None = None
    comment_id: str | None = None
    error: str | None = None
    due_at: datetime | None = None


class SettleWork(msgspec.Struct, frozen=True, kw_only=True):
    """Everything was told, or nothing was to be: the issue is done, given up, or ready again."""

    id: WorkId
    claim: str
    at: datetime
    status: WorkStatus
    not_before: datetime


class ReleaseWork(msgspec.Struct, frozen=True, kw_only=True):
    """A person gives an issue back: it may be taken at once, and its attempts are forgotten.

    Refused while its job has not ended. With `is_forced` one that is being settled is released as well: nothing more is
    written to the tracker about it.
    """

    id: WorkId
    at: datetime
    is_forced: bool = False


class SetSourceState(msgspec.Struct, frozen=True, kw_only=True):
    """Record how a source is doing."""

    state: SourceState


WorkChange = (
    ReserveWork
    | StepWork
    | HoldWork
    | LoseWork
    | EndWork
    | NoteWork
    | SettleWork
    | ReleaseWork
    | SetSourceState
)
