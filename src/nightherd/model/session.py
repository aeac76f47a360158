"""Session: resumable, forkable conversation context that outlives the jobs in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightherd.model.ids import SessionId
from nightherd.model.lifecycle import Lifecycle


class SessionMode(StrEnum):
    """How an agent's jobs share context."""

    FRESH_PER_JOB = "fresh_per_job"
    PERSISTENT = "persistent"
    PER_CHANNEL = "per_channel"


class SessionStatus(StrEnum):
    """Where a session stands."""

    CREATED = "created"
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    EXPIRED = "expired"


SESSION_LIFECYCLE = Lifecycle(
    "session",
    {
        SessionStatus.CREATED: frozenset({SessionStatus.ACTIVE, SessionStatus.EXPIRED}),
        SessionStatus.ACTIVE: frozenset({SessionStatus.PAUSED, SessionStatus.COMPLETED}),
        SessionStatus.PAUSED: frozenset(
            {SessionStatus.ACTIVE, SessionStatus.COMPLETED, SessionStatus.EXPIRED}
        ),
        SessionStatus.COMPLETED: frozenset(),
        SessionStatus.EXPIRED: frozenset(),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """What a session belongs to; jobs with the same key share it, others never do."""

    agent: str
    mode: SessionMode
    channel: str | None = None
    schedule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session's row: identity, standing and how far it has come."""

    id: SessionId
    key: SessionKey
    status: SessionStatus
    runtime_type: str
    working_directory: str
    created_at: datetime
    last_active_at: datetime
    runtime_session_id: str | None = None
    job_count: int = 0
    turn_count: int = 0
    message_count: int = 0
    token_estimate: int = 0


def status_between_jobs(mode: SessionMode) -> SessionStatus:
    """Where a session stands once its job has ended: one job's own is done, a shared one waits."""
    return SessionStatus.COMPLETED if mode is SessionMode.FRESH_PER_JOB else SessionStatus.PAUSED
