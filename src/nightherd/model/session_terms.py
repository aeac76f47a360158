"""Session terms: what an agent, or one of its schedules, says about the sessions of its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from nightherd.model.session import SessionMode

DEFAULT_IDLE = timedelta(hours=24)
"""How long a session that jobs share may go unused when nothing was said."""
TIMEOUT_KEY = "session.timeout"
"""The key that bounds a job with a session of its own."""
DEFAULT_CONTEXT_WINDOW = 20
"""How many of the latest messages a summary leaves as they are when nothing was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTerms:
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
    """Whether an interrupted job goes on by itself."""
    resume_timeout: timedelta | None = None
    """How long after the interruption it still does; None for any time."""
    max_turns: int | None = None
    """Turns a job may take when the agent does not say so itself."""
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
