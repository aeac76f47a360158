"""AgentState: what an agent is doing, derived from its jobs whenever one of them moves."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.lifecycle import Lifecycle


class AgentStatus(StrEnum):
    """Where an agent stands."""

    IDLE = "idle"
    RUNNING = "running"
    ERROR = "error"


AGENT_LIFECYCLE = Lifecycle(
    "agent",
    {
        AgentStatus.IDLE: frozenset({AgentStatus.RUNNING, AgentStatus.ERROR}),
        AgentStatus.RUNNING: frozenset({AgentStatus.IDLE, AgentStatus.ERROR}),
        AgentStatus.ERROR: frozenset({AgentStatus.IDLE, AgentStatus.RUNNING}),
    },
)


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's row."""

    name: str
    status: AgentStatus = AgentStatus.IDLE
    current_job: JobId | None = None
    last_job: JobId | None = None
    next_schedule: str | None = None
    next_trigger_at: datetime | None = None
    container_id: str | None = None
    error_message: str | None = None
    login: str | None = None
    """The login of its latest execution (model/limits/login.py)."""


def stands_for_workflow(name: str) -> bool:
    """Whether that is no agent of a fleet file: what runs the commands of workflows, or a workflow with schedules.

    Agents have no colon in their names.
    """
    return ":" in name


def after_job_moved(state: AgentState, job: Job, oldest_running: JobId | None) -> AgentState:
    """The agent's state once `job` stands as it does now; `oldest_running` counts `job` when it runs.

    A failure stays until a job succeeds or a person resets it; a cancelled job changes nothing about it.
    """
    last_job, error_message = state.last_job, state.error_message
    if job.is_terminal:
        last_job = job.id
    if job.status is JobStatus.COMPLETED:
        error_message = None
    elif job.status is JobStatus.FAILED:
        error_message = job.error or (job.exit_reason.value if job.exit_reason else "failed")
    is_same = job.status is JobStatus.RUNNING and state.current_job == oldest_running
    return with_status(
        replace(
            state,
            current_job=oldest_running,
            last_job=last_job,
            container_id=state.container_id if is_same else None,
            error_message=error_message,
        )
    )


def with_status(state: AgentState) -> AgentState:
    """`state` with the status its other fields mean."""
    if state.current_job is not None:
        return replace(state, status=AgentStatus.RUNNING)
    status = AgentStatus.IDLE if state.error_message is None else AgentStatus.ERROR
    return replace(state, status=status)
