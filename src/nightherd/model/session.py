"""Session: resumable, forkable conversation context that outlives the jobs in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightherd.model.ids import JobId, SessionId
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.money import FREE, MicroUsd


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
        # Completed without ever being active: its only job was cancelled before it began.
        SessionStatus.CREATED: frozenset(
            {SessionStatus.ACTIVE, SessionStatus.COMPLETED, SessionStatus.EXPIRED}
        ),
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
    """What a shared session belongs to; jobs with the same key share it, others never do."""

    agent: str
    mode: SessionMode
    channel_id: str | None = None
    schedule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session's row: identity, standing and how far it has come."""

    id: SessionId
    agent: str
    mode: SessionMode
    status: SessionStatus
    runtime_type: str
    working_directory: str
    created_at: datetime
    last_active_at: datetime
    channel_id: str | None = None
    schedule: str | None = None
    runtime_session_id: str | None = None
    docker_enabled: bool = False
    operation: str = "autonomous"
    name: str | None = None
    parent_session_id: SessionId | None = None
    """The session this one was forked from."""
    base_job_id: JobId | None = None
    """With `base_seq`: the place in the parent's record up to which both are the same."""
    base_seq: int | None = None
    imported_from: str | None = None
    cost_microusd: MicroUsd = FREE
    job_count: int = 0
    turn_count: int = 0
    message_count: int = 0
    token_estimate: int = 0
    number: int = 0
    """Place in the order of creation; the cursor that lists page by."""

    @property
    def key(self) -> SessionKey:
        """What it belongs to; meaningless for `fresh_per_job`, whose session is its job's alone."""
        return SessionKey(
            agent=self.agent, mode=self.mode, channel_id=self.channel_id, schedule=self.schedule
        )


def status_between_jobs(mode: SessionMode) -> SessionStatus:
    """Where a session stands once its job has ended: one job's own is done, a shared one waits."""
    return SessionStatus.COMPLETED if mode is SessionMode.FRESH_PER_JOB else SessionStatus.PAUSED


def can_join(current: Session, proposed: Session) -> bool:
    """Whether a job that would begin `proposed` goes on in `current` instead.

    What the model resumes from depends on where and by what it was run, so both have to agree.
    """
    return (
        current.mode is not SessionMode.FRESH_PER_JOB
        and current.status not in SESSION_LIFECYCLE.terminal
        and current.key == proposed.key
        and current.runtime_type == proposed.runtime_type
        and current.working_directory == proposed.working_directory
        and current.docker_enabled == proposed.docker_enabled
    )
