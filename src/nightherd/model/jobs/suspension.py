"""Suspension: a job stops without ending, why, and what lets it go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import CHILD_WAITS, SuspendReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """Why a job waits. What it has done stays done, and it goes on from there."""

    reason: SuspendReason
    message: str
    code: str | None = None
    """What exactly was met: `spend_exceeded`, `rate_limited` ..."""
    current_value: float | None = None
    current_max: float | None = None
    until: datetime | None = None
    """When it goes on by itself; None when somebody has to say so."""
    owner: str | None = None
    """Whose limit was met, when that is something above the job: the id of a job, or an agent or a schedule."""
    is_ahead: bool = False
    """Whether `current_value` is what the next turn could bring it to."""
    is_named: bool = False
    """Whether `until` is the provider's own time and not the end of one of our pauses."""
    limit: str | None = None
    """The provider's name of the usage limit that was hit."""
    login_limit: str | None = None
    """The id of the login's limit that was hit (model/limits/login.py), where it stops other jobs too."""
    is_below: bool = False
    """Whether a job below met the limit: once that one is over, this one goes on by itself."""

    @property
    def ends_with_children(self) -> bool:
        """Whether there is nothing to wait for once no job below it is open."""
        return self.is_below or self.code == CHILD_WAITS


@dataclass(frozen=True, slots=True, kw_only=True)
class FailSuspended:
    """A job that waits does not go on: it fails, because of what it waits for."""

    job_id: JobId
    at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailWaiting:
    """End a job that no worker has, pending or suspended, as failed."""

    job_id: JobId
    at: datetime
    message: str
    code: str
