"""The strip of a schedule: its slots in a span of time, those that have passed and those to come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from nightherd.model.jobs.job import Job
from nightherd.model.schedules.due import Due, upcoming
from nightherd.model.schedules.rule import Cron, rule_text
from nightherd.model.schedules.schedule import Slot
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.views.jobs.jobs import timestamp
from nightherd.views.schedules.rows import PastSlotRow, PlannedSlotRow, StripDocument, StripRow
from nightherd.views.schedules.schedules import ScheduleView, slot_row, workflow_of

if TYPE_CHECKING:
    from nightherd.ports import StateReader

MOST_SLOTS = 500
"""Slots of one schedule that have passed, and those to come, in one strip."""


class PastSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that has passed, with the job or run that it made."""

    slot: Slot
    job: Job | None = None
    run: WorkflowRun | None = None


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule with its slots in a span of time, in order."""

    view: ScheduleView
    past: Sequence[PastSlot]
    planned: Sequence[Due]
    is_past_cut: bool = False
    """Whether older slots of the span were left out."""
    is_planned_cut: bool = False
    """Whether later ones were."""


def strip_of(
    reader: StateReader, view: ScheduleView, since: datetime, until: datetime, now: datetime
) -> Strip:
    """The schedule's slots from `since` to before `until`: the newest of the past, and the next of those to come."""
    slots = reader.slots_between(view.id, since, until, MOST_SLOTS + 1)
    planned = _planned(view, until, now)
    return Strip(
        view=view,
        past=[_past_slot(reader, slot) for slot in reversed(slots[:MOST_SLOTS])],
        planned=planned[:MOST_SLOTS],
        is_past_cut=len(slots) > MOST_SLOTS,
        is_planned_cut=len(planned) > MOST_SLOTS,
    )


def _past_slot(reader: StateReader, slot: Slot) -> PastSlot:
    job = reader.find_job(slot.job_id) if slot.job_id is not None else None
    run = reader.find_run(RunId(slot.run_id)) if slot.run_id is not None else None
    return PastSlot(slot=slot, job=job, run=run)


def _planned(view: ScheduleView, until: datetime, now: datetime) -> list[Due]:
    """What is due before `until`, one more than is shown; nothing of a schedule that is off."""
    if view.rule is None or view.next_run_at is None:
        return []
    found: list[Due] = []
    waiting = view.state.next_due_at
    if waiting is not None and waiting <= now and view.state.rule == rule_text(view.rule):
        # Due already, and fired later because of its jitter.
        found.append(Due(instant=waiting, runs_at=view.next_run_at))
    coming = upcoming(view.id, view.schedule, view.rule, now, until)
    found += islice(coming, MOST_SLOTS + 1)
    return [due for due in found if due.instant < until]


def strip_row(strip: Strip) -> StripRow:
    """A schedule's strip as plain data."""
    view = strip.view
    return {
        "id": view.id,
        "agent": view.agent.name,
        "name": view.schedule.name,
        "workflow": workflow_of(view),
        "rule": rule_text(view.rule) or None,
        "timezone": view.rule.timezone if isinstance(view.rule, Cron) else None,
        "enabled": view.is_enabled,
        "is_paused": view.state.is_paused,
        "next_run_at": timestamp(view.next_run_at),
        "past": [past_slot_row(one) for one in strip.past],
        "planned": [planned_slot_row(due) for due in strip.planned],
        "is_past_cut": strip.is_past_cut,
        "is_planned_cut": strip.is_planned_cut,
    }


def past_slot_row(past: PastSlot) -> PastSlotRow:
    """A slot that has passed, with how its job or run stands."""
    made = past.job or past.run
    return {
        **slot_row(past.slot),
        "kind": past.slot.kind,
        "job_status": None if past.job is None else past.job.status,
        "run_status": None if past.run is None else past.run.status,
        "error": None if made is None else made.error,
        "ended_at": None if made is None else timestamp(made.finished_at),
    }


def planned_slot_row(due: Due) -> PlannedSlotRow:
    """A slot to come."""
    return {"due_at": timestamp(due.instant), "runs_at": timestamp(due.runs_at)}


def strip_document(strips: Sequence[Strip], since: datetime, until: datetime) -> StripDocument:
    """The strips of schedules as plain data."""
    return {
        "since": timestamp(since),
        "until": timestamp(until),
        "schedules": [strip_row(strip) for strip in strips],
    }
