"""Failure: what the code of a failed job means: which kind of error it is, and whether the same may succeed later.

One table over all runtimes. A code that is not in it is unknown, and nothing is promised about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nightherd.errors import (
    JobTimeoutError,
    MalformedResponseError,
    NightherdError,
    RunnerError,
    SDKInitializationError,
    SDKStreamingError,
)
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

FAILURES = {
    "missing_cli": _begin(),
    "missing_api_key": _begin(),
    "auth_failed": _begin(),
    "token_expired": _begin(),
    "billing": _begin(),
    "working_directory": _begin(),
    "model_not_found": _begin(),
    "session_not_found": _begin(),
    "session_expired": _begin(),
    "no_script": _begin(),
    "no_model": _begin(),
    "missing_provider": _begin(),
    "template": _begin(),
    "rate_limited": _passing(),
    "overloaded": _passing(),
    "server_error": _passing(),
    "network": _passing(),
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
    "malformed_answer": FailureKind(type=FailureType.MALFORMED_RESPONSE, recoverable=True),
    "empty_answer": FailureKind(type=FailureType.MALFORMED_RESPONSE, recoverable=True),
    "no_result": FailureKind(type=FailureType.MALFORMED_RESPONSE),
}
"""Every code a runtime of ours gives, and what it means."""


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


def details_of(job: Job, stack: str | None = None) -> RunnerErrorDetails | None:
    """Why the job did not succeed; None when it did, or is not over."""
    if job.error is None and job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        return None
    kind = FAILURES.get(job.error_code or "", UNKNOWN)
    return RunnerErrorDetails(
        message=job.error or f"the job was {job.status.value}",
        type=kind.type,
        code=job.error_code,
        recoverable=kind.recoverable,
        messages_received=max(job.messages - 1, 0),
        stack=stack,
    )


def error_of(job: Job) -> NightherdError | None:
    """The same as an exception, for callers who raise it."""
    found = details_of(job)
    if found is None:
        return None
    if job.exit_reason is ExitReason.TIMEOUT:
        return JobTimeoutError(found.message)
    match found.type:
        case FailureType.INITIALIZATION:
            return SDKInitializationError(
                found.message, code=found.code, job_id=job.id, agent_name=job.agent
            )
        case FailureType.STREAMING:
            return SDKStreamingError(
                found.message, code=found.code, job_id=job.id, agent_name=job.agent
            )
        case FailureType.MALFORMED_RESPONSE:
            return MalformedResponseError(
                found.message, code=found.code, job_id=job.id, agent_name=job.agent
            )
        case FailureType.UNKNOWN:
            return RunnerError(found.message, code=found.code, job_id=job.id, agent_name=job.agent)


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
