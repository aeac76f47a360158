"""Execution: one try at a job by one worker, fenced by its epoch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightherd.model.ids import ExecutionId, JobId, SessionId, WorkerId
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.money import FREE, MicroUsd


class ExecutionStatus(StrEnum):
    """Where one try stands."""

    STARTED = "started"
    FINISHED = "finished"
    LOST = "lost"


EXECUTION_LIFECYCLE = Lifecycle(
    "execution",
    {
        ExecutionStatus.STARTED: frozenset({ExecutionStatus.FINISHED, ExecutionStatus.LOST}),
        ExecutionStatus.FINISHED: frozenset(),
        ExecutionStatus.LOST: frozenset(),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An execution's row. Tokens, turns and cost are this try's own; the job's row has the sums."""

    id: ExecutionId
    job_id: JobId
    epoch: int
    worker: WorkerId
    status: ExecutionStatus
    trigger_type: str
    trigger_id: str
    skill: str
    """The agent's name."""
    started_at: datetime
    repo: str | None = None
    issue_number: int | None = None
    finished_at: datetime | None = None
    success: bool | None = None
    error: str | None = None
    turns: int = 0
    duration_ms: int | None = None
    session_id: SessionId | None = None
    runtime_session_id: str | None = None
    cost_microusd: MicroUsd = FREE
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    api_duration_ms: int | None = None
    stop_reason: str | None = None
    workflow_run_id: str | None = None
