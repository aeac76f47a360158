"""Schedule and Slot: the state of a rule in time, and each of its due instants with its one outcome."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.lifecycle import Lifecycle


class ScheduleStatus(StrEnum):
    """Where a schedule stands; `disabled` is also what a schedule that paused itself shows."""

    IDLE = "idle"
    RUNNING = "running"
    DISABLED = "disabled"


SCHEDULE_LIFECYCLE = Lifecycle(
    "schedule",
    {
        ScheduleStatus.IDLE: frozenset({ScheduleStatus.RUNNING, ScheduleStatus.DISABLED}),
        # Disabling while a job runs goes straight to disabled and stays there when the job ends.
        ScheduleStatus.RUNNING: frozenset({ScheduleStatus.IDLE, ScheduleStatus.DISABLED}),
        # Enabled again while a job of it still runs.
        ScheduleStatus.DISABLED: frozenset({ScheduleStatus.IDLE, ScheduleStatus.RUNNING}),
    },
)


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule's row."""

    id: str
    """`AGENT/NAME`."""
    agent: str
    name: str
    status: ScheduleStatus = ScheduleStatus.IDLE
    last_run_at: datetime | None = None
    """When its last job ended."""
    next_run_at: datetime | None = None
    """When its next slot is fired; None while it is disabled."""
    last_error: str | None = None
    consecutive_failures: int = 0
    next_due_at: datetime | None = None
    """The instant that names its next slot: `next_run_at` without the jitter."""
    rule: str = ""
    """The rule that `next_due_at` is an instant of."""
    pause_after: int = 5
    """Failures in a row after which it pauses itself; 0 for never."""

    @property
    def is_paused(self) -> bool:
        """Whether it paused itself: it failed too often in a row, and was not enabled again."""
        return 0 < self.pause_after <= self.consecutive_failures


class SlotOutcome(StrEnum):
    """What became of a due instant."""

    JOB = "job"
    RUN = "run"
    """It started a run of a workflow."""
    SKIPPED = "skipped"


class SlotKind(StrEnum):
    """What became of a due instant, for people."""

    RAN = "ran"
    SKIPPED = "skipped"
    """It was due and made no job or run."""
    MISSED = "missed"
    """Nothing could fire it when it was due."""


MISSED_BEGINNING = "missed: "
"""How the reason of a slot begins that nothing could fire when it was due."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A due instant's row: it is there once, with exactly one outcome."""

    id: str
    """`AGENT/NAME@INSTANT`."""
    schedule_id: str
    due_at: datetime
    outcome: SlotOutcome
    decided_at: datetime
    job_id: JobId | None = None
    reason: str | None = None
    """Why it was skipped."""
    run_id: str | None = None
    """The run that it started, for a schedule of a workflow."""

    @property
    def kind(self) -> SlotKind:
        """Whether it made something, and if not, whether anything could have fired it."""
        if self.outcome is not SlotOutcome.SKIPPED:
            return SlotKind.RAN
        is_missed = self.reason is not None and self.reason.startswith(MISSED_BEGINNING)
        return SlotKind.MISSED if is_missed else SlotKind.SKIPPED


def schedule_id(agent: str, name: str) -> str:
    """The key of an agent's schedule."""
    return f"{agent}/{name}"


def slot_id(schedule: str, due_at: datetime) -> str:
    """The key of a schedule's due instant; the same instant is the same slot in every time zone."""
    return f"{schedule}@{due_at.astimezone(UTC).isoformat(timespec='microseconds')}"


def after_job_ended(
    state: ScheduleState, job: Job, at: datetime, *, is_busy: bool
) -> ScheduleState:
    """The schedule once a job of it has ended; `is_busy` while it has another.

    One that was disabled meanwhile stays disabled; one that failed too often in a row is from now on.
    """
    rests = state.status is ScheduleStatus.RUNNING and not is_busy
    failed = job.status is JobStatus.FAILED
    after = replace(
        state,
        status=ScheduleStatus.IDLE if rests else state.status,
        last_run_at=at,
        last_error=(job.error or "failed") if failed else None,
        consecutive_failures=state.consecutive_failures + 1 if failed else 0,
    )
    return switched_off(after) if after.is_paused else after


def switched_off(state: ScheduleState) -> ScheduleState:
    """The schedule, disabled: nothing of it is due any more."""
    return replace(state, status=ScheduleStatus.DISABLED, next_run_at=None, next_due_at=None)


class ScheduleOverride(msgspec.Struct, frozen=True, kw_only=True):
    """A person's override of a schedule, beside the fleet file; deleted when the schedule is reset.

    Older versions left a row in which nothing is set. It is no override.
    """

    id: str
    """`AGENT/NAME`."""
    updated_at: datetime
    enabled: bool | None = None
    schedule: str | None = None
    """An interval or cron expression instead of the declared one."""
    updated_by: str | None = None


def may_fire(is_declared: bool, override: ScheduleOverride | None) -> bool:
    """Whether a schedule is enabled: as it is declared, unless it is overridden."""
    said = override.enabled if override is not None else None
    return is_declared if said is None else said


class PlanSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule is by its declaration, and which slot of it comes next.

    `override` and `replaces` are what was found when this was worked out; with another override, or another
    slot to come, it is refused.
    """

    agent: str
    schedule: str
    rule: str
    enabled: bool
    """As declared; an override has the last word."""
    pause_after: int
    next_due_at: datetime | None
    next_run_at: datetime | None
    override: str | None = None
    """The rule of the override, if it has one."""
    replaces: datetime | None = None
    """The instant of the slot that was to come."""


class OverrideSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """Switch a schedule on or off, or give it another rule; None leaves that part of the override as it is.

    Enabling forgets the failures it paused itself for. `reset` takes the whole override away.
    """

    agent: str
    schedule: str
    at: datetime
    by: str
    enabled: bool | None = None
    rule: str | None = None
    reset: bool = False
    is_declared_enabled: bool = True
    """What it is without an override."""
