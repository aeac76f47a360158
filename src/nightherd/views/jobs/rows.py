"""The shapes of jobs in lists and documents, shared by `--json` and the API."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from nightherd.model.jobs.failure import FailureType
from nightherd.model.jobs.job import (
    ExecutionStatus,
    ExitReason,
    JobStatus,
    SuspendReason,
    TriggerType,
)


class LostRow(TypedDict):
    """Since when a running job has no worker, and what happens next."""

    since: str
    next: str


class LostJobRow(LostRow):
    """The lost job of a schedule or a session."""

    job: str


class WaitsBehindRow(TypedDict):
    """The job of its session for which a job waits."""

    job_id: str
    status: JobStatus
    suspend_reason: SuspendReason | None
    resumes_at: str | None


class UsageRow(TypedDict):
    """The tokens and turns of a job."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    num_turns: int


class JobErrorRow(TypedDict):
    """Why a job failed or waits."""

    code: str | None
    message: str


class JobRow(TypedDict):
    """A job as lists have it: everything but its long texts."""

    id: str
    agent: str
    schedule: str | None
    trigger_type: TriggerType
    trigger_id: str | None
    status: JobStatus
    exit_reason: ExitReason | None
    suspend_reason: SuspendReason | None
    resumes_at: str | None
    lost: LostRow | None
    waits_behind: WaitsBehindRow | None
    session_id: str | None
    workspace_id: str | None
    runtime_session_id: str | None
    forked_from: str | None
    resumed_from: str | None
    parent_job_id: str | None
    workflow_run_id: str | None
    phase: str | None
    priority: int
    restart_count: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    duration_seconds: float | None
    turns: int
    messages: int
    usage: UsageRow
    cost_usd: float
    summary: str | None
    error: JobErrorRow | None
    output_file: str | None


class ErrorDetailsRow(TypedDict):
    """Why a job did not succeed, in the words programs go by."""

    message: str
    type: FailureType
    code: str | None
    recoverable: bool
    messages_received: int
    hint: str | None


class FailedHookRow(TypedDict):
    """A failed hook of an agent's last job."""

    agent: str
    job_id: str
    name: str
    event: str
    error: str | None


class ExecutionRow(TypedDict):
    """One try to run a job. Tokens, turns and cost are this try's own."""

    id: str
    epoch: int
    worker: str
    status: ExecutionStatus
    trigger_type: str
    trigger_id: str
    skill: str
    repo: str | None
    issue_number: int | None
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    api_duration_ms: int | None
    success: bool | None
    session_id: str | None
    runtime_session_id: str | None
    turns: int
    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int
    cost_usd: float
    stop_reason: str | None
    workflow_run_id: str | None
    output_text: str | None
    error: str | None


class TreeRow(TypedDict):
    """What a job and all jobs below it have used together."""

    jobs: int
    cost_usd: float
    usage: UsageRow


class ChildRow(TypedDict):
    """A job that a job has made, with what its own tree has cost."""

    id: str
    agent: str
    status: JobStatus
    lost: LostRow | None
    turns: int
    cost_usd: float
    tree_cost_usd: float


class DenialRow(TypedDict):
    """A tool call that was not allowed."""

    tool_name: str
    reason: str
    tool_use_id: NotRequired[str | None]


class HookRunRow(TypedDict):
    """A hook of a job that failed."""

    name: str
    event: str
    success: NotRequired[bool | None]
    id: NotRequired[str]
    duration_ms: NotRequired[int | None]
    output: NotRequired[str | None]
    error: NotRequired[str | None]
    is_interrupted: NotRequired[bool]
    job_id: NotRequired[str | None]


class TroublesDocument(TypedDict):
    """What went wrong in a job beside its outcome; or why that is not known."""

    cut_off: str | None
    denials: list[DenialRow]
    failed_hooks: list[HookRunRow]
    journal_error: str | None


class ResultDocument(TroublesDocument):
    """How a job came out."""

    job_id: str
    session_id: str | None
    session_note: str | None
    runtime_session_id: str | None
    agent: str
    status: JobStatus
    exit_reason: ExitReason | None
    suspend_reason: SuspendReason | None
    resumes_at: str | None
    lost: LostRow | None
    success: bool
    summary: str | None
    duration_seconds: float | None
    usage: UsageRow
    cost_usd: float
    error: JobErrorRow | None
    error_details: ErrorDetailsRow | None
