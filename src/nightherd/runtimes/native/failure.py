"""Reset: how long a provider that refuses a request for now wants to be left alone, by its counters.

Most say it outright (`Retry-After`, which pydantic-ai reads). Some only report of each counter how much of it
remains, and when it starts again: as an instant, a number of seconds, or a duration like `6m0s`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic_ai import exceptions as pa

from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.jobs.retry import KEEPS_A_CLOCK
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.secrets import NO_SECRETS, Secrets
from nightherd.model.units import parse_duration
from nightherd.model.usage import Usage
from nightherd.runtimes.native.script_model import ScriptedFailure

RESET = re.compile(r"(^|-)ratelimit-(\S+-)?reset(-|$)")
"""How headers are called that say when a counter starts again, in small letters."""
AN_INSTANT = 1e9
"""A number from here on is no length of time, but seconds since 1970."""
IN_MILLISECONDS = 1e11
"""And from here on milliseconds."""


def seconds_until_reset(headers: Mapping[str, str] | None, now: datetime) -> float | None:
    """Until every counter that is used up has started again; None when nothing says so."""
    given = headers or {}
    names = (name for name in given if RESET.search(name) and _is_used_up(given, name))
    waits = (_wait(given[name].strip(), now) for name in names)
    return max((wait for wait in waits if wait is not None), default=None)


def _is_used_up(headers: Mapping[str, str], reset: str) -> bool:
    """Whether nothing remains of the counter, as far as anybody says."""
    remaining = headers.get(reset.replace("reset", "remaining"), "0")
    try:
        return float(remaining) <= 0
    except ValueError:
        return False


def _wait(said: str, now: datetime) -> float | None:
    """The seconds that are meant; none are left of a time that is over."""
    with suppress(ValueError):
        number = float(said)
        if number < AN_INSTANT:
            return max(number, 0.0)
        since = number / 1_000 if number >= IN_MILLISECONDS else number
        return max(since - now.timestamp(), 0.0)
    with suppress(InvalidValueError):
        return parse_duration(said).total_seconds()
    with suppress(ValueError):
        at = datetime.fromisoformat(said)
        whole = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return max((whole - now).total_seconds(), 0.0)
    return None


TEXT_SHOWN = 2_000
"""Characters of what a provider says that an error's text holds."""

KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
"""The variable that a provider's key is looked for in."""


class RunFailure(Exception):
    """The run cannot continue, though nothing that pydantic-ai knows of has happened; `code` says why."""

    def __init__(self, code: str, message: str, *, recoverable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.recoverable = recoverable


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A row: which errors it is about, what they are called, and whether trying again later can help."""

    kind: type[BaseException]
    code: str
    recoverable: bool = False
    statuses: frozenset[int] | None = None
    text: str | None = None

    def fits(self, error: BaseException) -> bool:
        """Whether the row is about `error`."""
        return (
            isinstance(error, self.kind)
            and (self.statuses is None or getattr(error, "status_code", None) in self.statuses)
            and (self.text is None or self.text in str(error))
        )


FAILURES = (
    Failure(
        kind=pa.ModelHTTPError, code="network", recoverable=True, statuses=frozenset({408, 425})
    ),
    Failure(kind=pa.ModelContextWindowExceededError, code="prompt_too_long"),
    Failure(kind=pa.ModelHTTPError, code="prompt_too_long", statuses=frozenset({413})),
    Failure(kind=pa.ModelQuotaExceededError, code="billing"),
    Failure(kind=pa.ModelAuthenticationError, code="auth_failed"),
    Failure(kind=pa.ModelNotFoundError, code="model_not_found"),
    Failure(kind=pa.ModelRateLimitError, code="rate_limited", recoverable=True),
    Failure(kind=pa.ModelOverloadedError, code="overloaded", recoverable=True),
    Failure(kind=pa.ModelUnavailableError, code="server_error", recoverable=True),
    Failure(kind=pa.ModelServerError, code="server_error", recoverable=True),
    Failure(kind=pa.ModelRequestTimeout, code="network", recoverable=True),
    Failure(kind=pa.ModelConnectionError, code="network", recoverable=True),
    Failure(kind=pa.ModelRequestRejectedError, code="invalid_request"),
    Failure(kind=pa.ModelAPIError, code="server_error", recoverable=True),
    Failure(kind=pa.ContentFilterError, code="refused"),
    Failure(kind=pa.UsageLimitExceeded, code="limit"),
    Failure(kind=pa.UnexpectedModelBehavior, code="malformed_answer", recoverable=True),
    Failure(kind=pa.UserError, code="missing_api_key", text="API_KEY"),
    Failure(kind=pa.UserError, code="model_not_found", text="Unknown model"),
    Failure(kind=pa.UserError, code="invalid_request"),
    Failure(kind=UsageError, code="no_model"),
    Failure(kind=InvalidValueError, code="template"),
    Failure(kind=ImportError, code="missing_provider"),
)
"""What is raised, from the most specific to the least."""

OTHERWISE = Failure(kind=BaseException, code="model_failed")
"""What no row says."""


MODEL_ERRORS = (
    pa.AgentRunError,
    pa.UserError,
    pa.FallbackExceptionGroup,
    ScriptedFailure,
    RunFailure,
    UsageError,
    InvalidValueError,
    ImportError,
)
"""What asking a model may raise; anything else is a mistake of ours."""


def failure_of(error: BaseException) -> Failure:
    """The row that fits."""
    return next((row for row in FAILURES if row.fits(error)), OTHERWISE)


def error_event(
    error: BaseException,
    *,
    turn: int,
    at: datetime,
    used: Usage | None = None,
    secrets: Secrets = NO_SECRETS,
) -> ErrorEvent:
    """The event that ends a run with `error`; `used` is what the whole run had used by then."""
    if isinstance(error, BaseExceptionGroup):  # every model of a fallback failed; the last says why
        return error_event(error.exceptions[-1], turn=turn, at=at, used=used, secrets=secrets)
    match error:
        case ScriptedFailure(code=code):
            facts: dict[str, Any] = {}
        case RunFailure(code=code, recoverable=recoverable):
            facts = {"recoverable": recoverable}
        case _:
            row = failure_of(error)
            code, facts = row.code, {"recoverable": row.recoverable}
    facts |= {
        "status": getattr(error, "status_code", None),
        "retry_after_s": _wait_after(error, code, at),
        "usage": msgspec.to_builtins(used) if used is not None else None,
    }
    return ErrorEvent(
        message=_text_of(error, secrets),
        code=code,
        turn=turn,
        extra={name: fact for name, fact in facts.items() if fact} or None,
    )


def _wait_after(error: BaseException, code: str, at: datetime) -> float | None:
    """How long the provider wants to be left alone: as it says outright, else until its counters start again."""
    retry_after: float | None = getattr(error, "retry_after", None)
    if retry_after is not None or code not in KEEPS_A_CLOCK:
        return retry_after
    return seconds_until_reset(getattr(error, "headers", None), at)


def _text_of(error: BaseException, secrets: Secrets) -> str:
    text = str(error) or type(error).__name__
    key = KEY.search(text) if isinstance(error, pa.UserError) else None
    if key is not None:  # what else it says is for those who program with pydantic-ai
        return f"no key: {key[0]} is not set, in the environment or in .env beside the fleet file"
    hint = getattr(error, "hint", None)
    if isinstance(error, UsageError) and hint:
        text = f"{text}; {hint}"
    text = str(secrets.mask(text))
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]} ..."
