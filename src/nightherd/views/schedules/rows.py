"""The shapes of schedules and slots in lists and documents, shared by `--json` and the API."""

from __future__ import annotations

from typing import TypedDict

from nightherd.model.jobs.job import JobStatus
from nightherd.model.schedules.rule import CatchUp
from nightherd.model.schedules.schedule import ScheduleStatus, SlotKind, SlotOutcome
from nightherd.model.workflows.run import RunStatus
from nightherd.views.jobs.rows import LostJobRow


class OverrideRow(TypedDict):
    """What a person set beside the fleet file; null where the fleet file counts."""

    enabled: bool | None
    schedule: str | None
    updated_at: str
    updated_by: str | None


class ScheduleRow(TypedDict):
    """A schedule as lists have it."""

    id: str
    agent: str
    name: str
    status: ScheduleStatus
    lost: LostJobRow | None
    rule: str | None
    declared_rule: str | None
    enabled: bool
    is_paused: bool
    last_run_at: str | None
    next_run_at: str | None
    last_error: str | None
    consecutive_failures: int
    jitter: str | None
    max_overlap: int
    max_suspended: int
    catch_up: CatchUp
    pause_after: int | None
    held_by: list[str]
    rate_limited_until: str | None
    override: OverrideRow | None


class SlotRow(TypedDict):
    """A due instant and what became of it."""

    id: str
    schedule: str
    due_at: str
    outcome: SlotOutcome
    job_id: str | None
    run_id: str | None
    reason: str | None
    decided_at: str


class WhyRow(TypedDict):
    """What decided the last firing of a schedule, and what decides the next, the reason that counts first."""

    last_slot: SlotRow | None
    last: str
    next: list[str]


class WhyDocument(WhyRow):
    """A schedule, and why it fires when it does."""

    schedule: ScheduleRow


class PlaceRow(TypedDict):
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int


class ScheduleDocument(ScheduleRow):
    """One schedule: where it is declared, what it asks or starts, and why it fires when it does."""

    timezone: str | None
    declared_enabled: bool
    prompt: str | None
    workflow: str | None
    origin: PlaceRow | None
    why: WhyRow


class PastSlotRow(SlotRow):
    """A due instant that has passed, and how the job or run that it made stands now."""

    kind: SlotKind
    job_status: JobStatus | None
    run_status: RunStatus | None
    error: str | None
    ended_at: str | None


class PlannedSlotRow(TypedDict):
    """A due instant to come; with jitter it is fired a little later."""

    due_at: str
    runs_at: str


class StripRow(TypedDict):
    """A schedule with its past and planned slots, in the order of time."""

    id: str
    agent: str
    name: str
    workflow: str | None
    rule: str | None
    timezone: str | None
    enabled: bool
    is_paused: bool
    next_run_at: str | None
    past: list[PastSlotRow]
    planned: list[PlannedSlotRow]
    is_past_cut: bool
    is_planned_cut: bool


class StripDocument(TypedDict):
    """The slots of schedules from `since` to `until`."""

    since: str
    until: str
    schedules: list[StripRow]
