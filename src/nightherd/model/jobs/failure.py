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
from nightherd.model.inbox.review import QUESTION
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
from nightherd.model.workflows.run import RUN_ID
from nightherd.next_step import Action, Advice, NextStep, SpellStep


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
    "workspace": _begin(),
    "container": _begin(),
    "container_engine": FailureKind(type=FailureType.INITIALIZATION, recoverable=True),
    "model_not_found": _begin(),
    "session_not_found": _begin(),
    "session_expired": _begin(),
    "message_not_found": _begin(),
    "no_script": _begin(),
    "no_model": _begin(),
    "missing_provider": _begin(),
    "template": _begin(),
    "invalid_command": _begin(),
    "missing_program": _begin(),
    "rate_limited": _passing(),
    "overloaded": _passing(),
    "server_error": _passing(),
    "network": _passing(),
    "session_held": _passing(),
    "stalled": _passing(),
    "killed": _passing(),
    "container_gone": _passing(),
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
    "command_failed": _lasting(),
    "rejected": _lasting(),
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


def details_of(
    job: Job, stack: str | None = None, spell: SpellStep | None = None
) -> RunnerErrorDetails | None:
    """Return why the job did not succeed, with its hint as `spell` writes it; None when it did, or is not over."""
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
        hint=advice_on(job).text(spell),
    )


def error_of(job: Job, raw_response: object = None) -> RunnerError | None:
    """Return the same as an exception, for callers who raise it; `raw_response` is what could not be parsed."""
    details = details_of(job)
    if details is None:
        return None
    kind = JobTimeoutError if job.exit_reason is ExitReason.TIMEOUT else ERRORS[details.type]
    error = kind(details.message, code=details.code, job_id=job.id, agent_name=job.agent)
    error.hint, error.next_step = details.hint, advice_on(job).step
    if isinstance(error, MalformedResponseError):
        error.raw_response, error.expected = raw_response, EXPECTED.get(details.code or "")
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


EXCEEDED = "_exceeded"
"""How the codes of limits end."""
MISSING_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
AMOUNTS = {
    "spend": re.compile(r"\$([\d,]+\.\d+)"),
    "duration": re.compile(r"\b((?:\d+(?:\.\d+)?(?:ms|[wdhms]))+)\b"),
}
"""How amounts stand in the error of a limit; counts are plain numbers."""
COUNTS = re.compile(r"(?<![\w.$])([\d,]*\d)(?![\w.])")
AGAIN = "{again}"
"""Where advice says `retry` or `resume`, by what fits the job."""
LATER = (f"{AGAIN} the job later", Action.RETRY_JOB)
OLD_VERSION = "check with `claude --version` whether Claude Code is old, then"
LOG_IN = "log in with `claude /login`, or export ANTHROPIC_API_KEY"
ADVICE: dict[str, tuple[str | None, Action | None]] = {
    "missing_cli": ("install Claude Code, or put `claude` on the PATH of the worker", None),
    "start_failed": (
        f"check the machine's memory, disk and limits of processes and open files, then {AGAIN} the job",
        Action.RETRY_JOB,
    ),
    "missing_api_key": (LOG_IN, None),
    "auth_failed": (
        f"check the key: the provider does not accept it; then {AGAIN} the job",
        Action.RETRY_JOB,
    ),
    "token_expired": (f"log in with `claude /login`, then {AGAIN} the job", Action.RETRY_JOB),
    "billing": (f"check the credit of the account, then {AGAIN} the job", Action.RETRY_JOB),
    "working_directory": (None, Action.SHOW_CONFIG),
    "workspace": (None, Action.RETRY_JOB),
    "container": (
        f"check the image and the docker settings of the agent, then {AGAIN} the job",
        Action.RETRY_JOB,
    ),
    "container_engine": (
        f"check that the container engine runs and that this user may use its socket, then {AGAIN} the job",
        Action.RETRY_JOB,
    ),
    "model_not_found": (None, Action.SHOW_CONFIG),
    "no_model": (None, Action.SHOW_CONFIG),
    "no_script": (None, Action.SHOW_CONFIG),
    "template": (None, Action.SHOW_CONFIG),
    "missing_provider": ("pip install 'nightherd[native]'", None),
    "rate_limited": (
        f"set max_concurrent to run fewer jobs at once, or {AGAIN} the job later",
        Action.RETRY_JOB,
    ),
    "overloaded": LATER,
    "server_error": LATER,
    "network": (
        f"check the connection, the addresses of MCP servers and the firewall, then {AGAIN} the job",
        Action.RETRY_JOB,
    ),
    PRICE_UNKNOWN: (
        "add the model to `prices:` in the fleet file, then resume the job",
        Action.RESUME_JOB,
    ),
    CHILD_WAITS: (
        "resume the child job that it waits for, and it continues; the job names that child",
        Action.SHOW_JOB,
    ),
    "session_held": (
        "Claude's own background agent has the session: stop it with `claude agents`, then resume the job",
        Action.RESUME_JOB,
    ),
    "stalled": (None, Action.RESUME_JOB),
    "killed": (None, Action.RESUME_JOB),
    "interrupted": (None, Action.RESUME_JOB),
    "timeout": ("raise job_timeout, then resume the job", Action.RESUME_JOB),
    "max_turns": ("raise max_turns, then resume the job", Action.RESUME_JOB),
    "limit": ("raise the limit, then resume the job", Action.RESUME_JOB),
    "prompt_too_long": (
        "shorten the prompt, or set session.max_context_tokens so that the session is summarised",
        None,
    ),
    "malformed_answer": (f"{OLD_VERSION} {AGAIN} the job", Action.RETRY_JOB),
    "no_result": (f"{OLD_VERSION} resume the job", Action.RESUME_JOB),
    "journal_failed": (None, Action.CHECK_STATE),
    "unreadable_record": (None, Action.CHECK_STATE),
}
"""What to do about each code, where that is known: in words, as an action, or both."""


def advice_on(job: Job) -> Advice:
    """Return what to do about the job's failure or suspension; empty when nothing is known to help."""
    code = job.error_code or ""
    limit = code.removesuffix(EXCEEDED)
    if job.suspend_reason is SuspendReason.APPROVAL:
        is_question = job.error_code == QUESTION
        answer = Action.ANSWER_QUESTION if is_question else Action.ANSWER_INBOX_ITEM
        return Advice(step=NextStep(answer, item=job.id))
    if job.suspend_reason is SuspendReason.BUDGET:
        return Advice(step=_shared_limit_step(job))
    if limit != code:
        maximum = _enough(limit, job.error or "")
        step = NextStep(Action.RAISE_JOB_LIMIT, job=job.id, limit=limit, maximum=maximum)
        return Advice(step=step)
    words, action = ADVICE.get(code, (None, None))
    if code == "missing_api_key":
        words, action = f"{key_advice(job.error or '')}, then {AGAIN} the job", Action.RETRY_JOB
    if code == "timeout" and TIMEOUT_KEY in (job.error or ""):
        words = f"raise {TIMEOUT_KEY}, then resume the job"
    if words is None and action is None and job.suspend_reason is SuspendReason.ERROR:
        words, action = LATER if job.resumes_at is not None else (None, Action.RESUME_JOB)
    is_suspended = job.status is JobStatus.SUSPENDED
    if is_suspended and action is Action.RETRY_JOB:  # a new job would do the same work twice
        action = Action.RESUME_JOB
        if job.resumes_at is not None and words is not None:
            words = words.replace("the job later", "the job sooner")
    words = None if words is None else words.replace(AGAIN, "resume" if is_suspended else "retry")
    if action is Action.RETRY_JOB and job.node_id is not None:  # a new job is no part of its run
        return Advice(words, NextStep(Action.RETRY_RUN, run=job.workflow_run_id))
    return Advice(words, None if action is None else NextStep(action, agent=job.agent, job=job.id))


def _shared_limit_step(job: Job) -> NextStep:
    """Return where to look at a limit that is not the job's own: its parent knows more, if it has one.

    The limit of a run is raised for the whole run.
    """
    run = RUN_ID.search(job.error or "")
    if job.workflow_run_id is not None and run is not None:
        limit = (job.error_code or "").removesuffix(EXCEEDED)
        maximum = _enough(limit, job.error or "")
        return NextStep(Action.RAISE_RUN_LIMIT, run=run[0], limit=limit or None, maximum=maximum)
    if job.parent_job_id is None or job.not_before is not None:
        return NextStep(Action.SHOW_LIMITS, agent=job.agent)
    return NextStep(Action.SHOW_JOB, job=job.parent_job_id)


def advice_on_code(code: str) -> str | None:
    """Return what to do about a failure before there is a job; None when only a job could be named."""
    words, action = ADVICE.get(code, (None, None))
    return words if action is None else None


def key_advice(error: str) -> str:
    """Return what to do about a missing key, by the variable that the error names."""
    variable = MISSING_KEY.search(error)
    if variable is None:
        return LOG_IN
    return f"export {variable[0]}, or set it in .env beside the fleet file"


def _enough(limit: str, error: str) -> str | None:
    """Return a maximum that lets the job continue: twice the largest amount that the error names."""
    amounts = AMOUNTS.get(limit, COUNTS).findall(error)
    try:
        match limit:
            case "spend":
                return f"{2 * max(float(amount.replace(',', '')) for amount in amounts):.2f}"
            case "duration":
                return format_duration(2 * max(parse_duration(amount) for amount in amounts))
            case _:
                return str(2 * max(int(amount.replace(",", "")) for amount in amounts))
    except (ValueError, InvalidValueError):  # none that can be read
        return None
