"""Failure: what the code of a failed job means: which kind of error it is, and whether the same may succeed later.

One table over all runtimes. A code that is not in it is unknown, and nothing is promised about it.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from nightherd.errors import (
    InvalidValueError,
    JobTimeoutError,
    MalformedResponseError,
    RunnerError,
    SDKInitializationError,
    SDKStreamingError,
)
from nightherd.model.jobs.job import (
    CHILD_WAITS,
    PRICE_UNKNOWN,
    ExitReason,
    Job,
    JobStatus,
    SuspendReason,
)
from nightherd.model.jobs.outcome import EXIT_OF_CODE
from nightherd.model.sessions.session import TIMEOUT_KEY
from nightherd.model.units import format_duration, parse_duration


class FailureType(StrEnum):
    """When it went wrong."""

    INITIALIZATION = "initialization"
    STREAMING = "streaming"
    MALFORMED_RESPONSE = "malformed_response"
    UNKNOWN = "unknown"


class FailureKind(msgspec.Struct, frozen=True, kw_only=True):
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
    "empty_answer": "a non-empty answer",
    "no_result": "a result before the end",
}
"""What would have been understood."""


ERRORS: dict[FailureType, type[RunnerError]] = {
    FailureType.INITIALIZATION: SDKInitializationError,
    FailureType.STREAMING: SDKStreamingError,
    FailureType.MALFORMED_RESPONSE: MalformedResponseError,
    FailureType.UNKNOWN: RunnerError,
}


class RunnerErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
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


GO_ON = "nightherd jobs resume {job}"
AGAIN = "nightherd jobs retry {job}"
LATER = f"later: {AGAIN}"
SOONER = f"sooner: {GO_ON}"
EXCEEDED = "_exceeded"
"""How the codes of limits end."""
MORE = "nightherd jobs resume {{job}} --raise {limit}={maximum}"
MISSING_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
AMOUNTS = {
    "spend": re.compile(r"\$([\d,]+\.\d+)"),
    "duration": re.compile(r"\b((?:\d+(?:\.\d+)?(?:ms|[wdhms]))+)\b"),
}
"""How amounts stand in what is said about a limit; counts are plain numbers."""
COUNTS = re.compile(r"(?<![\w.$])([\d,]*\d)(?![\w.])")
SHARED = "nightherd limits show {agent}"
ABOVE = "nightherd jobs show {parent}"
"""A job that waits for what is not its own, and has one above it: that one knows more."""
ADVICE = {
    "missing_cli": "install Claude Code, or put `claude` on the PATH of the worker",
    "start_failed": f"check the machine's memory, disk and limits of processes and open files, then: {AGAIN}",
    "missing_api_key": "log in with `claude /login`, or export ANTHROPIC_API_KEY",
    "auth_failed": f"check the key: the provider does not accept it; then: {AGAIN}",
    "token_expired": f"claude /login, then: {AGAIN}",
    "billing": f"check the credit of the account, then: {AGAIN}",
    "working_directory": "nightherd config show {agent} --origin",
    "model_not_found": "nightherd config show {agent} --origin",
    "no_model": "nightherd config show {agent} --origin",
    "no_script": "nightherd config show {agent} --origin",
    "template": "nightherd config show {agent} --origin",
    "missing_provider": "pip install 'nightherd[native]'",
    "rate_limited": f"{LATER}; fewer at once: max_concurrent",
    "overloaded": LATER,
    "server_error": LATER,
    "network": f"check the connection, the addresses of MCP servers and the firewall, then: {AGAIN}",
    PRICE_UNKNOWN: f"add the model to `prices:` in the fleet file, then: {GO_ON}",
    CHILD_WAITS: "nightherd jobs show {job} names the child job it waits for; resume that one, and this one continues",
    "session_held": f"Claude's own background agent has the session: stop it with `claude agents`, then: {GO_ON}",
    "stalled": GO_ON,
    "killed": GO_ON,
    "interrupted": GO_ON,
    "timeout": f"raise job_timeout, then: {GO_ON}",
    "max_turns": f"raise max_turns, then: {GO_ON}",
    "limit": f"raise the limit, then: {GO_ON}",
    "prompt_too_long": "shorten the prompt, or set session.max_context_tokens so that the session is summarised",
    "malformed_answer": f"{AGAIN}; it may be an old version: claude --version",
    "no_result": f"{GO_ON}; it may be an old version: claude --version",
    "journal_failed": "nightherd doctor",
    "unreadable_record": "nightherd doctor",
}
"""What to do about it, where that is known."""


def advice_on(job: Job) -> str | None:
    """What to do about the job's failure, or its waiting; None when nothing is known to help."""
    code = job.error_code or ""
    limit = code.removesuffix(EXCEEDED)
    known = ADVICE.get(code)
    if limit != code:
        known = MORE.format(limit=limit, maximum=_enough(limit, job.error or ""))
    if code == "missing_api_key":
        known = f"{key_advice(job.error or '')}, then: {AGAIN}"
    if code == "timeout" and TIMEOUT_KEY in (job.error or ""):
        known = f"raise {TIMEOUT_KEY}, then: {GO_ON}"
    if job.suspend_reason is SuspendReason.BUDGET:
        known = SHARED if job.parent_job_id is None or job.not_before is not None else ABOVE
    if known is None and job.suspend_reason is SuspendReason.ERROR:
        known = LATER if job.resumes_at is not None else GO_ON
    if known is None:
        return None
    if job.status is JobStatus.SUSPENDED:  # once more, as a new job, would do the same work twice
        known = known.replace(LATER, SOONER) if job.resumes_at is not None else known
        known = known.replace(AGAIN, GO_ON)
    return known.format(job=job.id, agent=job.agent, parent=job.parent_job_id)


def key_advice(error: str) -> str:
    """What to do about a missing key, by the variable that the error names."""
    variable = MISSING_KEY.search(error)
    if variable is None:
        return ADVICE["missing_api_key"]
    return f"export {variable[0]}, or set it in .env beside the fleet file"


def _enough(limit: str, error: str) -> str:
    """A maximum that lets the job go on: twice the largest amount that the error names."""
    amounts = AMOUNTS.get(limit, COUNTS).findall(error)
    try:
        match limit:
            case "spend":
                return f"{2 * max(float(one.replace(',', '')) for one in amounts):.2f}"
            case "duration":
                return format_duration(2 * max(parse_duration(one) for one in amounts))
            case _:
                return str(2 * max(int(one.replace(",", "")) for one in amounts))
    except (ValueError, InvalidValueError):  # none that can be read
        return "MAXIMUM"
