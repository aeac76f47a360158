"""Job: one durable request for one agent to do one piece of work, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.ids import ExecutionId, JobId, SessionId, WorkerId
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.text import shorten
from nightherd.model.units import FREE, MicroUsd


class JobStatus(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExitReason(StrEnum):
    """Why a job ended."""

    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    MAX_TURNS = "max_turns"
    LIMIT = "limit"


class SuspendReason(StrEnum):
    """Why a job waits."""

    LIMIT = "limit"
    ERROR = "error"
    BUDGET = "budget"
    APPROVAL = "approval"
    RATE_LIMIT = "rate_limit"


PRICE_UNKNOWN = "price_unknown"
"""Code of a job that waits because a limit of dollars applies and the cost of its model is unknown."""

CHILD_WAITS = "child_waits"
"""Code of a job that waits because one waits that does a part of it: once that one is over, it resumes by itself."""

JOB_LIFECYCLE = Lifecycle(
    "job",
    {
        JobStatus.PENDING: frozenset({JobStatus.RUNNING, JobStatus.CANCELLED, JobStatus.FAILED}),
        # Back to pending is a rescue or a drain: the job continues in its next execution.
        JobStatus.RUNNING: frozenset(
            {
                JobStatus.PENDING,
                JobStatus.SUSPENDED,
                JobStatus.COMPLETED,
                JobStatus.FAILED,
                JobStatus.CANCELLED,
            }
        ),
        JobStatus.SUSPENDED: frozenset({JobStatus.PENDING, JobStatus.CANCELLED, JobStatus.FAILED}),
        JobStatus.COMPLETED: frozenset(),
        JobStatus.FAILED: frozenset(),
        JobStatus.CANCELLED: frozenset(),
    },
)

STATUS_OF_EXIT = {
    ExitReason.SUCCESS: JobStatus.COMPLETED,
    ExitReason.ERROR: JobStatus.FAILED,
    ExitReason.TIMEOUT: JobStatus.FAILED,
    ExitReason.MAX_TURNS: JobStatus.FAILED,
    ExitReason.LIMIT: JobStatus.FAILED,
    ExitReason.CANCELLED: JobStatus.CANCELLED,
}
"""The one terminal status that goes with each exit reason."""

SUMMARY_LIMIT = 500
"""Characters of a summary kept in the job's row; the whole text stands apart, lists never read it."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job's row: everything a list shows, nothing unbounded."""

    id: JobId
    agent: str
    trigger_type: TriggerType
    status: JobStatus
    created_at: datetime
    session_id: SessionId | None = None
    runtime_session_id: str | None = None
    trigger_id: str | None = None
    schedule: str | None = None
    exit_reason: ExitReason | None = None
    suspend_reason: SuspendReason | None = None
    forked_from: JobId | None = None
    resumed_from: JobId | None = None
    parent_job_id: JobId | None = None
    asked_about: JobId | None = None
    """The job that met a limit, when this one decides about it (`limits.hooks`)."""
    priority: int = 0
    dedupe_key: str | None = None
    restart_count: int = 0
    not_before: datetime | None = None
    """The earliest it may be taken, when it waits for a time."""
    cancel_requested_at: datetime | None = None
    """A person has cancelled the running job; its worker ends it."""
    epoch: int = 0
    worker: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    turns: int = 0
    messages: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: MicroUsd = FREE
    summary: str | None = None
    error: str | None = None
    error_code: str | None = None
    last_seq: int = 0
    workspace_id: str | None = None
    """The workspace it works in; None when it works in its agent's directory, or has not begun."""
    workflow_run_id: str | None = None
    """The workflow run that it is a phase of."""
    node_id: str | None = None
    """The node of that run."""
    number: int = 0
    """Place in the order of submission. Lists are ordered by `created_at`; their cursor is the number of a job."""

    @property
    def output_file(self) -> str:
        """The journal's file name inside `jobs/`."""
        return f"{self.id}.jsonl"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing can happen to this job any more."""
        return JOB_LIFECYCLE.is_terminal(self.status)

    @property
    def tokens(self) -> int:
        """Tokens of every kind that it has used."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_creation_input_tokens
            + self.cache_read_input_tokens
        )

    @property
    def resumes_at(self) -> datetime | None:
        """When a suspended job resumes by itself; None when it is not suspended, or waits for a person."""
        return self.not_before if self.status is JobStatus.SUSPENDED else None


class JobTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The unbounded texts of a job, kept apart from its row: lists never read them."""

    job_id: JobId
    prompt: str
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    summary: str | None = None
    output_text: str | None = None
    overrides: JobOptions = NO_OPTIONS
    """What this job has other than its agent."""
    session_note: str | None = None
    """Why it did not continue in the session it would have had."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs fit: of every field that is set, one of its values (model/jobs/filter.py)."""

    agents: tuple[str, ...] = ()
    statuses: tuple[JobStatus, ...] = ()
    triggers: tuple[TriggerType, ...] = ()
    schedules: tuple[str, ...] = ()
    """Each a name, or AGENT/NAME."""
    sessions: tuple[str, ...] = ()
    """Ids, or how they begin."""
    runs: tuple[str, ...] = ()
    """Workflow runs, as ids or how they begin."""
    least_cost: MicroUsd | None = None
    most_cost: MicroUsd | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Created before this."""
    words: tuple[str, ...] = ()
    """Each is somewhere in its id, agent, schedule, summary or error."""


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows: newest first, those after the job with the number `before`, at most `limit`."""

    agent: str | None = None
    status: JobStatus | None = None
    filter: JobFilter | None = None
    before: int | None = None
    limit: int = 20


def row_text(text: str | None) -> str | None:
    """As much of a summary or an error as a listed row has."""
    return None if text is None else shorten(text, SUMMARY_LIMIT)


class TriggerType(StrEnum):
    """What started a job; calls of the API count as manual."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    CHAT = "chat"
    DISCORD = "discord"
    SLACK = "slack"
    WEB = "web"
    FORK = "fork"
    SPAWNED = "spawned"


EXECUTION_WORD = {
    TriggerType.MANUAL: "api",
    TriggerType.SCHEDULE: "cron",
    TriggerType.WEBHOOK: "webhook",
    TriggerType.CHAT: "chat",
    TriggerType.DISCORD: "chat",
    TriggerType.SLACK: "chat",
    TriggerType.WEB: "api",
    TriggerType.FORK: "api",
    TriggerType.SPAWNED: "api",
}
"""The word an execution's row has for each trigger: that table knows four kinds of cause."""


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


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """An execution's row. Tokens, turns and cost are this try's own; the job's row has the sums."""

    id: ExecutionId
    job_id: JobId
    epoch: int
    worker: WorkerId
    status: ExecutionStatus
    trigger_type: str
    trigger_id: str
    skill: str
    """The agent's name; `WORKFLOW:PHASE` of a phase."""
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
    output_text: str | None = None
    """The answer of an iteration of a loop, for the next one."""
