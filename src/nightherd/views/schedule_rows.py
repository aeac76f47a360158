"""The shapes of schedules and slots in lists and documents, shared by `--json` and the API."""

from __future__ import annotations

from typing import TypedDict

from nightherd.model.schedules.rule import CatchUp
from nightherd.model.schedules.schedule import ScheduleStatus, SlotOutcome
from nightherd.views.job_rows import LostJobRow


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


class WhyDocument(TypedDict):
    """What decided the last firing of a schedule, and what decides the next, the reason that counts first."""

    schedule: ScheduleRow
    last_slot: SlotRow | None
    last: str
    next: list[str]
