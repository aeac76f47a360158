"""Retry: what is done about a run that failed in a way that may pass. Data and one pure decision.

A failure is recoverable when the runtime says so. Tries are counted since the last turn that was finished:
a run that gets on is not given up for failures long ago. A provider that names a time is taken at its word;
when that is too long to sit out, the job waits for it without a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nightherd.model.job import SuspendReason
from nightherd.model.suspension import Suspension

ONCE = frozenset({"token_expired", "session_expired"})
"""Failures that a second try with fresh credentials or a fresh session settles, or nothing does."""
KEEPS_A_CLOCK = frozenset({"rate_limited", "overloaded"})
"""Failures for which a time to come back means waiting, not failing."""
LONGEST_WAIT = timedelta(days=366)
"""No provider means to be asked again later than that: a longer time is taken as not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, and how long between."""

    attempts: int = 5
    """Tries in all without a finished turn, the first included."""
    base: timedelta = timedelta(seconds=2)
    """Before the second try; doubled before each further one."""
    cap: timedelta = timedelta(minutes=1)
    patience: timedelta = timedelta(minutes=2)
    """The longest time a worker sits out; beyond it the job is suspended until then."""


PATIENT = RetryPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is known about a run that failed."""

    code: str
    message: str
    is_recoverable: bool = False
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """After this long."""

    delay: timedelta
    attempt: int
    """The number of the try to come, the first being 1."""
    attempts: int


def failure_of(code: str | None, message: str, extra: Mapping[str, Any] | None) -> Failure:
    """The failure an error event tells of; `extra` says whether trying again can help, and when."""
    facts = extra or {}
    return Failure(
        code=code or "",
        message=message,
        is_recoverable=bool(facts.get("recoverable")),
        retry_after=_wait(facts.get("retry_after_s")),
    )


def _wait(seconds: object) -> timedelta | None:
    """How long somebody wants to be left alone; None for what cannot be meant, however large a number is."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_WAIT.total_seconds():
        return None
    return timedelta(seconds=seconds)


def next_step(
    policy: RetryPolicy, failure: Failure, *, failures: int, at: datetime, spread: float
) -> TryAgain | Suspension | None:
    """What to do after `failures` failures in a row without a finished turn; None: the job has failed.

    `spread` is a random number from 0 to 1, so that many jobs do not come back at one moment.
    """
    once = failure.code in ONCE
    if not failure.is_recoverable and not once:
        return None
    attempts = 2 if once else policy.attempts
    wanted = failure.retry_after
    if wanted is not None and wanted > policy.patience and failure.code in KEEPS_A_CLOCK:
        return Suspension(
            reason=SuspendReason.RATE_LIMIT,
            message=failure.message,
            code=failure.code,
            until=at + wanted,
        )
    if failures >= attempts:
        if once:
            return None
        return Suspension(
            reason=SuspendReason.ERROR,
            message=f"{failure.message} ({failures} tries)",
            code=failure.code,
        )
    if once:
        return TryAgain(delay=timedelta(0), attempt=failures + 1, attempts=attempts)
    backoff = min(policy.base * 2 ** (failures - 1), policy.cap)
    # Half of it is sure, half is spread; a time the provider named is never cut short.
    delay = backoff / 2 + backoff / 2 * spread
    return TryAgain(
        delay=max(delay, wanted or timedelta(0)), attempt=failures + 1, attempts=attempts
    )
