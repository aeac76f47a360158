"""Failure: what the code of a failed job means: which kind of error it is, and whether the same may succeed later.

One table over all runtimes. A code that is not in it is unknown, and nothing is promised about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nightherd.errors import (
    JobTimeoutError,
    MalformedResponseError,
    RunnerError,
    SDKInitializationError,
    SDKStreamingError,
)
from nightherd.model.advice import advice_on
from nightherd.model.job import ExitReason, Job, JobStatus
from nightherd.model.outcome import EXIT_OF_CODE


class FailureType(StrEnum):
    """When it went wrong."""

    INITIALIZATION = "initialization"
    STREAMING = "streaming"
    MALFORMED_RESPONSE = "malformed_response"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureKind:
    """What is known about every failure of one code."""

    type: FailureType
    recoverable: bool = False


def _begin() -> FailureKind:
    return FailureKind(type=FailureType.INITIALIZATION)


def _passing() -> FailureKind:
    return FailureKind(type=FailureType.STREAMING, recoverable=True)


def _lasting() -> FailureKind:
    return FailureKind(type=FailureType.STREAMING)


UNKNOWN = FailureKind(type=FailureType.UNKNOWN)

BEFORE_ANYTHING = frozenset({"network"})
"""What passes, and yet kept a run from beginning when nothing had been heard of it."""

FAILURES = {
    "missing_cli": _begin(),
    "start_failed": FailureKind(type=FailureType.INITIALIZATION, recoverable=True),
    "missing_api_key": _begin(),
    "auth_failed": _begin(),
    "token_expired": _begin(),
    "billing": _begin(),
    "working_directory": _begin(),
    "model_not_found": _begin(),
    "session_not_found": _begin(),
    "session_expired": _begin(),
    "message_not_found": _begin(),
    "no_script": _begin(),
    "no_model": _begin(),
    "missing_provider": _begin(),
    "template": _begin(),
    "rate_limited": _passing(),
    "overloaded": _passing(),
    "server_error": _passing(),
    "network": _passing(),
    "session_held": _passing(),
    "stalled": _passing(),
    "killed": _passing(),
    "prompt_too_long": _lasting(),
    "output_limit": _lasting(),
    "refused": _lasting(),
    "invalid_request": _lasting(),
    "max_turns": _lasting(),
    "limit": _lasting(),
    "timeout": _lasting(),
    "interrupted": _lasting(),
    "model_failed": _lasting(),
    "unreadable_record": _lasting(),
    "hook_failed": _lasting(),
    "claude_failed": _lasting(),
    "runtime_error": _lasting(),
    "journal_failed": _lasting(),
    "malformed_answer": FailureKind(type=FailureType.MALFORMED_RESPONSE, recoverable=True),
    "empty_answer": FailureKind(type=FailureType.MALFORMED_RESPONSE, recoverable=True),
    "no_result": FailureKind(type=FailureType.MALFORMED_RESPONSE),
}
"""Every code that a job of ours can fail with, and what it means."""
EXPECTED = {
    "malformed_answer": "an answer of texts and tool calls",
    "empty_answer": "an answer that says something",
    "no_result": "a result before the end",
}
"""What would have been understood."""


ERRORS: dict[FailureType, type[RunnerError]] = {
    FailureType.INITIALIZATION: SDKInitializationError,
    FailureType.STREAMING: SDKStreamingError,
    FailureType.MALFORMED_RESPONSE: MalformedResponseError,
    FailureType.UNKNOWN: RunnerError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerErrorDetails:
    """Why a job did not succeed, for programs."""

    message: str
    type: FailureType
    code: str | None
    recoverable: bool
    messages_received: int
    """0: it failed before the model had said anything."""
    stack: str | None = None
    hint: str | None = None
    """What to do about it."""


def details_of(job: Job, stack: str | None = None) -> RunnerErrorDetails | None:
    """Why the job did not succeed; None when it did, or is not over."""
    if job.error is None and job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        return None
    code = job.error_code or ""
    kind = FAILURES.get(code, _lasting() if code in EXIT_OF_CODE else UNKNOWN)
    received = max(job.messages - 1, 0)
    is_beginning = code in BEFORE_ANYTHING and not received
    return RunnerErrorDetails(
        message=job.error or f"the job was {job.status.value}",
        type=FailureType.INITIALIZATION if is_beginning else kind.type,
        code=job.error_code,
        recoverable=kind.recoverable,
        messages_received=received,
        stack=stack,
        hint=advice_on(job),
    )


def error_of(job: Job, raw_response: object = None) -> RunnerError | None:
    """The same as an exception, for callers who raise it; `raw_response` is what nobody could read."""
    found = details_of(job)
    if found is None:
        return None
    kind = JobTimeoutError if job.exit_reason is ExitReason.TIMEOUT else ERRORS[found.type]
    error = kind(found.message, code=found.code, job_id=job.id, agent_name=job.agent)
    error.hint = found.hint
    if isinstance(error, MalformedResponseError):
        error.raw_response, error.expected = raw_response, EXPECTED.get(found.code or "")
    return error


TIMEOUTS = ("etimedout", "timed out", "timeout", "deadline")
CANCELS = ("aborted", "abort", "cancelled", "canceled")
TURNS = ("max_turns", "max turns", "maximum turns", "turn limit")


def classify_error(error: BaseException | str) -> ExitReason:
    """The exit reason that an error of any origin means: by its code where it has one, else by its words."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code.lower() in EXIT_OF_CODE:
        return EXIT_OF_CODE[code.lower()]
    if isinstance(error, TimeoutError | JobTimeoutError):
        return ExitReason.TIMEOUT
    text = f"{code or ''} {type(error).__name__} {error}".lower()
    for words, reason in (
        (TURNS, ExitReason.MAX_TURNS),
        (TIMEOUTS, ExitReason.TIMEOUT),
        (CANCELS, ExitReason.CANCELLED),
    ):
        if any(word in text for word in words):
            return reason
    return ExitReason.ERROR
