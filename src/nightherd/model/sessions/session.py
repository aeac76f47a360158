"""Session: resumable, forkable conversation context that outlives the jobs in it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from nightherd.model.ids import JobId, SessionId
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.units import FREE, MicroUsd


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


class SessionKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a shared session belongs to; jobs with the same key share it, others never do."""

    agent: str
    mode: SessionMode
    channel_id: str | None = None
    schedule: str | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
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
    base_messages: int = 0
    """How many messages a fork began with."""
    base_turns: int = 0
    max_age_s: float | None = None
    """How old it may grow; None for any age."""
    max_idle_s: float | None = None
    """How long it may go unused; None forever."""
    rank: int = 0
    """Where it was put among those of its key: 0 for where its number puts it, -1 for nowhere (a fork)."""
    removed_at: datetime | None = None
    """When it was cleaned up: nothing continues in it any more, and lists leave it out."""
    imported_from: str | None = None
    root: str | None = None
    """The agent's directory, when the session works in a workspace made from it; else None."""
    workspace_id: str | None = None
    """The workspace it works in, or worked in last."""
    cost_microusd: MicroUsd = FREE
    job_count: int = 0
    turn_count: int = 0
    message_count: int = 0
    token_estimate: int = 0
    number: int = 0
    """Place in the order of creation; the cursor that lists page by."""

    @property
    def agent_directory(self) -> str:
        """The directory that its agent was configured with."""
        return self.root or self.working_directory

    @property
    def place(self) -> int:
        """The highest place of its key is the current session's; -1 is never joined unasked."""
        return self.rank or self.number

    @property
    def key(self) -> SessionKey:
        """What it belongs to; meaningless for `fresh_per_job`, whose session is its job's alone."""
        return SessionKey(
            agent=self.agent, mode=self.mode, channel_id=self.channel_id, schedule=self.schedule
        )


def status_between_jobs(mode: SessionMode) -> SessionStatus:
    """Where a session stands once its job has ended: one job's own is done, a shared one waits."""
    return SessionStatus.COMPLETED if mode is SessionMode.FRESH_PER_JOB else SessionStatus.PAUSED


def is_over(session: Session) -> bool:
    """Whether no job can continue the session itself, only a branch of it."""
    return session.status in SESSION_LIFECYCLE.terminal or session.removed_at is not None


def expires_at(session: Session) -> datetime | None:
    """When it is too old, or has gone unused for too long, whichever comes first; None for never."""
    ends = []
    if session.max_age_s is not None:
        ends.append(session.created_at + timedelta(seconds=session.max_age_s))
    if session.max_idle_s is not None:
        ends.append(session.last_active_at + timedelta(seconds=session.max_idle_s))
    return min(ends, default=None)


def is_expired(session: Session, at: datetime) -> bool:
    """Whether no job continues in it unasked. One that is in use never expires."""
    if session.status is SessionStatus.EXPIRED:
        return True
    if session.status not in (SessionStatus.CREATED, SessionStatus.PAUSED):
        return False
    ends = expires_at(session)
    return ends is not None and at >= ends


def why_not_join(current: Session, proposed: Session, at: datetime, *, is_used: bool) -> str | None:
    """Why a job that would begin `proposed` does not continue in `current`; None when it does.

    What the model resumes from depends on where and by what it was run, so both have to agree. A session
    that other jobs wait for (`is_used`) does not expire.
    """
    checks = (
        (is_expired(current, at) and not is_used, "it has expired"),
        (
            current.runtime_type != proposed.runtime_type,
            f"it was run by {current.runtime_type}, and the agent is run by {proposed.runtime_type} now",
        ),
        (
            current.agent_directory != proposed.agent_directory,
            f"it was in {current.agent_directory}, and the agent works in {proposed.agent_directory} now",
        ),
        (
            current.docker_enabled != proposed.docker_enabled,
            "it was in a container, and the agent is not any more"
            if current.docker_enabled
            else "the agent is in a container now, and it was not",
        ),
    )
    return next((f"session {current.id}: {reason}" for is_so, reason in checks if is_so), None)


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions fit: of every field that is set, one of its values (model/sessions/filter.py)."""

    agents: tuple[str, ...] = ()
    statuses: tuple[SessionStatus, ...] = ()
    modes: tuple[SessionMode, ...] = ()
    schedules: tuple[str, ...] = ()
    """Each a name, or AGENT/NAME."""
    channels: tuple[str, ...] = ()
    least_cost: MicroUsd | None = None
    most_cost: MicroUsd | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Created before this."""
    words: tuple[str, ...] = ()
    """Each is somewhere in its id, agent, name, channel or schedule."""


def move_of(session: Session, *, is_inside: bool) -> str | None:
    """What to say about a session that continues in a container and did not before, or the other way round."""
    is_begun = session.turn_count > 0 or session.runtime_session_id or session.parent_session_id
    if session.docker_enabled == is_inside or not is_begun:
        return None
    before, now = "on this machine", "in a container"
    if session.docker_enabled:
        before, now = now, before
    return f"session {session.id} was {before} before, and continues {now}"


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a list shows: newest first, `before` a number, at most `limit`."""

    agent: str | None = None
    status: SessionStatus | None = None
    mode: SessionMode | None = None
    filter: SessionFilter | None = None
    before: int | None = None
    limit: int = 20


DEFAULT_IDLE = timedelta(hours=24)
"""How long a session that jobs share may go unused when nothing was said."""
TIMEOUT_KEY = "session.timeout"
"""The key that bounds a job with a session of its own."""
DEFAULT_CONTEXT_WINDOW = 20
"""How many of the latest messages a summary leaves as they are when nothing was said."""


class SessionTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs share context, how long that lives, and how much of it a model is given.

    `timeout` means one thing for a job's own session and another for a shared one; ask `max_age`,
    `max_idle` and `job_timeout` what it comes to.
    """

    mode: SessionMode = SessionMode.FRESH_PER_JOB
    timeout: timedelta | None = None
    idle_timeout: timedelta | None = None
    max_context_tokens: int | None = None
    """Tokens of context beyond which the older part is summarised; None for never."""
    context_window: int = DEFAULT_CONTEXT_WINDOW
    """How many of the latest messages a summary leaves as they are."""
    auto_resume: bool = True
    """Whether an interrupted job resumes by itself."""
    resume_timeout: timedelta | None = None
    """How long after the interruption it still does; None for any time."""
    max_turns: int | None = None
    """Maximum turns of a job if the agent sets none."""
    model: str | None = None
    """The model when the agent does not name one itself."""

    @property
    def is_shared(self) -> bool:
        """Whether a session outlives the job that began it."""
        return self.mode is not SessionMode.FRESH_PER_JOB

    @property
    def max_age(self) -> timedelta | None:
        """How old a session may grow: `timeout`, when `idle_timeout` says the other thing."""
        return self.timeout if self.is_shared and self.idle_timeout is not None else None

    @property
    def max_idle(self) -> timedelta | None:
        """How long a session may go unused; a day when nothing was said. One job's own never expires."""
        if not self.is_shared:
            return None
        return self.idle_timeout or self.timeout or DEFAULT_IDLE

    @property
    def job_timeout(self) -> timedelta | None:
        """How long a job with a session of its own may run."""
        return None if self.is_shared else self.timeout
