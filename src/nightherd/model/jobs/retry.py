"""Retry: what is done about a run that failed. Data and one pure decision.

A failure that can pass never ends a job. It is tried again quickly a few times, then after growing pauses in
which the job is suspended and holds no worker, for `max_wait` in all. A time that the provider names replaces the
pauses and has no maximum. Tries are counted since the last finished turn, over all executions.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.units import rough_duration

ONCE = frozenset({"session_expired"})
"""Failures that one retry with a fresh session settles; if not, the job fails."""
NEEDS_A_PERSON = frozenset({"missing_api_key", "auth_failed", "token_expired", "billing"})
"""Failures that get one retry, in case credentials were just renewed; then the job waits for a person."""
KEEPS_A_CLOCK = frozenset({"rate_limited", "overloaded"})
"""Failures by which the provider asks to be left alone: the job is suspended as `rate_limit`."""
LONGEST_WAIT = timedelta(days=366)
"""No provider means to be asked again later than that: a longer time is taken as not said."""
MOST_DOUBLINGS = 20


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and how long between."""

    attempts: int = 5
    """Quick tries without a finished turn, the first included."""
    base: timedelta = timedelta(seconds=2)
    """Before the second try; doubled before each further quick one."""
    cap: timedelta = timedelta(minutes=1)
    patience: timedelta = timedelta(minutes=2)
    """The longest time a worker sits out; beyond it the job is suspended until then."""
    first_pause: timedelta = timedelta(minutes=2)
    """The first pause after the quick tries; doubled before each further try."""
    longest_pause: timedelta = timedelta(hours=1)
    max_wait: timedelta = timedelta(hours=24)
    """How long after the first failure a job is retried, when the provider names no time."""


PATIENT = RetryPolicy()


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a run that failed."""

    code: str
    message: str
    is_recoverable: bool = False
    retry_after: timedelta | None = None
    resets_at: datetime | None = None
    """When the usage limit that was hit resets, where the provider names the time."""
    limit: str | None = None
    """The provider's name of that limit."""


class TryAgain(msgspec.Struct, frozen=True, kw_only=True):
    """After this long."""

    delay: timedelta
    attempt: int
    """The number of the try to come, the first being 1."""
    attempts: int


def failure_of(code: str | None, message: str, extra: Mapping[str, Any] | None) -> Failure:
    """The failure an error event reports; `extra` says whether trying again can help, and when."""
    facts = extra or {}
    limit = facts.get("limit")
    return Failure(
        code=code or "",
        message=message,
        is_recoverable=bool(facts.get("recoverable")),
        retry_after=_wait(facts.get("retry_after_s")),
        resets_at=_instant(facts.get("resets_at")),
        limit=limit if isinstance(limit, str) else None,
    )


def _wait(seconds: object) -> timedelta | None:
    """How long the provider wants to be left alone; None for what cannot be meant, however large a number is."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_WAIT.total_seconds():
        return None
    return timedelta(seconds=seconds)


def _instant(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None


def next_step(
    policy: RetryPolicy,
    failure: Failure,
    *,
    failures: int,
    at: datetime,
    spread: float,
    failing_since: datetime | None = None,
) -> TryAgain | Suspension | None:
    """What to do after `failures` failures in a row without a finished turn; None: the job has failed.

    `failing_since` is when the first of them was; None for now. `spread` is a random number from 0 to 1, so that
    many jobs do not come back at one moment.
    """
    if failure.code in ONCE or failure.code in NEEDS_A_PERSON:
        return _after_one_retry(failure, failures)
    if not failure.is_recoverable:
        return None
    named = _named_time(policy, failure, at)
    if named is not None:
        return _waiting(failure, failure.message, named, is_named=True)
    if failures < policy.attempts:
        return _quick_retry(policy, failure, failures, spread)
    waited = at - min(failing_since or at, at)
    message = f"{failure.message} ({_tries(failures)} in {rough_duration(waited)})"
    left = policy.max_wait - waited
    if left <= timedelta(0):
        return Suspension(reason=SuspendReason.ERROR, message=message, code=failure.code)
    doublings = min(failures - policy.attempts, MOST_DOUBLINGS)
    pause = min(policy.first_pause * 2**doublings, policy.longest_pause)
    # Most of it is sure, the rest is spread. The last try is at the very end, but never before the time that
    # the provider named.
    pause = max(min(pause * (0.8 + 0.2 * spread), left), failure.retry_after or timedelta(0))
    return _waiting(failure, message, at + pause)


def _after_one_retry(failure: Failure, failures: int) -> TryAgain | Suspension | None:
    if failures < 2:
        return TryAgain(delay=timedelta(0), attempt=failures + 1, attempts=2)
    if failure.code in ONCE:
        return None
    return Suspension(reason=SuspendReason.ERROR, message=failure.message, code=failure.code)


def _named_time(policy: RetryPolicy, failure: Failure, at: datetime) -> datetime | None:
    """The time to suspend the job until, when the provider names one that is not too short for it."""
    if failure.resets_at is not None and at < failure.resets_at <= at + LONGEST_WAIT:
        return failure.resets_at
    wanted = failure.retry_after
    return at + wanted if wanted is not None and wanted > policy.patience else None


def _waiting(
    failure: Failure, message: str, until: datetime, *, is_named: bool = False
) -> Suspension:
    is_limit = failure.code in KEEPS_A_CLOCK
    return Suspension(
        reason=SuspendReason.RATE_LIMIT if is_limit else SuspendReason.ERROR,
        message=message,
        code=failure.code,
        until=until,
        is_named=is_named,
        limit=failure.limit,
    )


def _quick_retry(policy: RetryPolicy, failure: Failure, failures: int, spread: float) -> TryAgain:
    backoff = min(policy.base * 2 ** min(failures - 1, MOST_DOUBLINGS), policy.cap)
    # Half of it is sure, half is spread; a time the provider named is never cut short.
    delay = max(backoff / 2 + backoff / 2 * spread, failure.retry_after or timedelta(0))
    return TryAgain(delay=delay, attempt=failures + 1, attempts=policy.attempts)


def _tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count} tries"


FIRST_S = 0.5
LONGEST_S = 15.0


class Backoff:
    """The pauses of one series of tries."""

    def __init__(self) -> None:
        self._next_s = FIRST_S
        self._reason = ""
        self._held_until = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether the last try failed."""
        return bool(self._reason)

    def fail(self, reason: str) -> tuple[float, bool]:
        """Note a failed try: how long to pause before the next one, and whether the reason is a new one."""
        is_new, self._reason = reason != self._reason, reason
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_S)
        return pause_s, is_new

    def hold(self, reason: str, monotonic: float) -> None:
        """Note a failed try: nothing is to be tried for the length of the pause."""
        self._held_until = monotonic + self.fail(reason)[0]

    def is_held(self, monotonic: float) -> bool:
        """Whether the pause is not over yet."""
        return monotonic < self._held_until

    def reset(self) -> None:
        """Note a try that worked."""
        self._next_s, self._reason = FIRST_S, ""


PASSING_ERRNOS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EINTR,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.ESTALE,
        errno.ETXTBSY,
    }
)
"""Too little of something, or a file that is in use."""
NO_THREAD = "can't start new thread"
"""What Python says about EAGAIN when it starts a thread."""


def can_pass(error: BaseException) -> bool:
    """Whether the operation that raised `error` may succeed later without a repair."""
    match error:
        case OSError():
            return error.errno in PASSING_ERRNOS
        case RuntimeError():
            return NO_THREAD in str(error)
        case _:
            return isinstance(error, MemoryError)
