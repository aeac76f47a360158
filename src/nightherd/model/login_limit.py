"""LoginLimit: a rate limit of a login that lasts until a time that the provider named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nightherd.model.ids import JobId
from nightherd.model.suspension import Suspension

STAGGER = timedelta(seconds=5)
"""How far apart jobs of a login start once its limit has reset."""
RECOVERY = timedelta(minutes=5)
"""How long after the reset they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLimit:
    """A limit's row. It stays when the limit is over, and is replaced when it is hit again."""

    id: str
    """The login, or `LOGIN/FAMILY` for a limit of one family of models (model/login.py)."""
    until: datetime
    next_start_at: datetime
    """Before this no job of the login starts: `until`, and after the reset a moment after the last start."""
    recorded_at: datetime
    job_id: JobId | None = None
    """The job that hit it."""
    name: str | None = None
    """The provider's name of the limit: `five_hour`, `seven_day` ..."""


def limit_of(stop: Suspension, job_id: JobId, at: datetime) -> LoginLimit | None:
    """Return the row of the limit that the job is suspended for; None when the limit stops no other job."""
    if stop.login_limit is None or stop.until is None:
        return None
    return LoginLimit(
        id=stop.login_limit,
        until=stop.until,
        next_start_at=stop.until,
        recorded_at=at,
        job_id=job_id,
        name=stop.limit,
    )


def text_of(limit: LoginLimit) -> str:
    """Say until when the login is limited."""
    at = limit.until.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"rate limited until {at}" + (f" ({limit.name})" if limit.name else "")


def stopping(limits: Iterable[LoginLimit | None], at: datetime) -> LoginLimit | None:
    """Return the limit that stops a job from starting at `at`, the longest one; None when none does."""
    active = [one for one in limits if one is not None and one.next_start_at > at]
    return max(active, key=lambda one: (one.until, one.next_start_at), default=None)
