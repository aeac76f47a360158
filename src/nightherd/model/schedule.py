"""Schedule and Slot: the state of a rule in time, and each of its due instants with its one outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobStatus
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
        ScheduleStatus.DISABLED: frozenset({ScheduleStatus.IDLE}),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """A schedule's row."""

    id: str
    """`AGENT/NAME`."""
    agent: str
    name: str
    status: ScheduleStatus = ScheduleStatus.IDLE
    last_run_at: datetime | None = None
    """When its last job ended."""
    next_run_at: datetime | None = None
    last_error: str | None = None
    consecutive_failures: int = 0


class SlotOutcome(StrEnum):
    """What became of a due instant."""

    JOB = "job"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
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

    One that was disabled meanwhile stays disabled.
    """
    rests = state.status is ScheduleStatus.RUNNING and not is_busy
    failed = job.status is JobStatus.FAILED
    return replace(
        state,
        status=ScheduleStatus.IDLE if rests else state.status,
        last_run_at=at,
        last_error=job.error if failed else None,
        consecutive_failures=state.consecutive_failures + 1 if failed else 0,
    )
