"""Every way a run of Claude fails, and what it is called: one table, read from the top, the first row that fits.

Versions differ in how they tag a failure, so a row names what has stayed the same: the API's status, the
kind of error, and only where nothing else is known, the text.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.doctor import OLDEST_TESTED
from nightherd.model.jobs.retry import can_pass
from nightherd.model.journal.event import ErrorEvent
from nightherd.runtimes.claude.usage_limit import UsageLimit
from nightherd.runtimes.keeper.attendant import Ending, KilledBy, signal_name

MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC})
"""Errors that mean that there is no program to start."""
STDERR_SHOWN = 2000
"""Characters of standard error that an error's text ends with, when there is nothing better to say."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What Claude said about how it ended, and what it said about the failure before."""

    text: str
    subtype: str = ""
    status: int | None = None
    kind: str = ""
    """Claude's own word for the error: `rate_limit`, `billing_error` ..."""
    stop_reason: str = ""
    retry_after_s: float | None = None
    """How long Claude last waited before it tried again by itself: what the API had asked for."""
    usage_limit: UsageLimit | None = None
    """The subscription's limit that was hit."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A row: what it is called, whether trying again later can help, and what has to be so."""

    code: str
    recoverable: bool = False
    subtype: str | None = None
    statuses: frozenset[int] | None = None
    kind: str | None = None
    stop_reason: str | None = None
    text: str | None = None

    def fits(self, report: Report) -> bool:
        """Whether everything the row names is so."""
        return (
            self.subtype in (None, report.subtype)
            and self.kind in (None, report.kind)
            and self.stop_reason in (None, report.stop_reason)
            and (self.statuses is None or report.status in self.statuses)
            and (self.text is None or re.search(self.text, report.text) is not None)
        )


def _statuses(*codes: int) -> frozenset[int]:
    return frozenset(codes)


SERVER_ERRORS = frozenset(range(500, 600))

FAILURES = (
    Failure(code="max_turns", subtype="error_max_turns"),
    Failure(code="limit", subtype="error_max_budget_usd"),
    Failure(code="session_not_found", text=r"^No conversation found|requires a valid session ID"),
    Failure(
        code="session_held",
        recoverable=True,
        text=r"is (currently )?running (as a|in the) background|moved to a background session",
    ),
    Failure(code="session_expired", text=r"[Ss]ession (has |is )?expired|session_expired"),
    Failure(code="message_not_found", text=r"^No message found"),
    Failure(code="missing_api_key", text=r"^Not logged in|Invalid API key . Please run /login"),
    Failure(code="refused", stop_reason="refusal"),
    Failure(code="prompt_too_long", text=r"^Prompt is too long"),
    Failure(code="prompt_too_long", statuses=_statuses(413)),
    Failure(code="billing", kind="billing_error"),
    Failure(code="billing", statuses=_statuses(402)),
    Failure(code="output_limit", kind="max_output_tokens"),
    Failure(code="token_expired", text=r"[Tt]oken (has )?expired|token_expired"),
    Failure(code="auth_failed", statuses=_statuses(401, 403)),
    Failure(code="model_not_found", kind="model_not_found"),
    Failure(code="rate_limited", recoverable=True, statuses=_statuses(429)),
    Failure(code="overloaded", recoverable=True, statuses=_statuses(529)),
    Failure(code="server_error", recoverable=True, statuses=SERVER_ERRORS),
    Failure(code="network", recoverable=True, statuses=_statuses(408, 425)),
    Failure(code="invalid_request", statuses=frozenset(range(400, 500))),
    Failure(code="rate_limited", recoverable=True, kind="rate_limit"),
    Failure(code="auth_failed", kind="authentication_failed"),
    Failure(code="network", recoverable=True, kind="connection_failed"),
    Failure(code="network", recoverable=True, text=r"ECONN|ENOTFOUND|ETIMEDOUT|EPIPE|Connection"),
    Failure(code="network", recoverable=True, text=r"Unable to connect|timed out|fetch failed"),
    Failure(code="malformed_answer", recoverable=True, text=r"empty or malformed response"),
    Failure(code="server_error", recoverable=True, kind="server_error"),
    Failure(code="invalid_request", kind="invalid_request"),
    Failure(code="interrupted", text=r"[Ii]nterrupted|aborted"),
)
"""What is reported, from the most specific to the least."""

KEEP_A_CLOCK = frozenset({"rate_limited", "overloaded"})
"""Failures that pass with time, and how much of it the API may have said."""

OTHERWISE = Failure(code="claude_failed")
"""What no row says."""


def failure_of(report: Report) -> Failure:
    """The row that fits."""
    return next((row for row in FAILURES if row.fits(report)), OTHERWISE)


def reported(report: Report, *, usage: Mapping[str, Any] | None, uuid: str | None) -> ErrorEvent:
    """The event for a failure that Claude reported."""
    row = failure_of(report)
    facts = {
        "recoverable": row.recoverable or None,
        "status": report.status,
        "retry_after_s": report.retry_after_s if row.code in KEEP_A_CLOCK else None,
        **(_named(report.usage_limit) if row.code == "rate_limited" else {}),
        "usage": usage,
    }
    return ErrorEvent(
        message=report.text,
        code=row.code,
        uuid=uuid,
        extra={name: fact for name, fact in facts.items() if fact} or None,
    )


def _named(limit: UsageLimit | None) -> dict[str, str | None]:
    """When the limit resets, and which it is."""
    if limit is None:
        return {}
    at = limit.resets_at
    return {"resets_at": at.isoformat() if at is not None else None, "limit": limit.name}


def vanished(ending: Ending, stderr: str) -> ErrorEvent:
    """The event for a `claude` that ended without saying how the run came out."""
    said = stderr.strip()[-STDERR_SHOWN:]
    match ending:
        case Ending(returncode=None) | Ending(killed_by=KilledBy.KEEPER_GONE):
            message = "claude was stopped: the process that guards it was killed"
            return ErrorEvent(message=message, code="killed", extra={"recoverable": True})
        case Ending(returncode=int(code)) if code < 0:
            message = f"claude was ended by {signal_name(-code)} before it had finished"
            return ErrorEvent(message=message, code="killed", extra={"recoverable": True})
        case Ending(returncode=0):
            return ErrorEvent(message="claude ended without a result", code="no_result")
        case _:
            row = failure_of(Report(text=said)) if said else OTHERWISE
            message = f"claude ended with exit code {ending.returncode}"
            return ErrorEvent(
                message=f"{message}: {said}" if said else message,
                code=row.code,
                extra={"recoverable": True} if row.recoverable else None,
            )


def not_started(error: OSError | ValueError, program: str, directory: str) -> ErrorEvent:
    """The event for a `claude` that could not be started in `directory`."""
    message = f"{program} cannot be started: {error}"
    if can_pass(error):
        return ErrorEvent(message=message, code="start_failed", extra={"recoverable": True})
    if isinstance(error, OSError) and error.filename == directory:
        return ErrorEvent(
            message=f"there is no directory {directory} to run in", code="working_directory"
        )
    if isinstance(error, OSError) and error.filename == program and error.errno in MISSING:
        return ErrorEvent(message=message, code="missing_cli")
    return ErrorEvent(message=message, code="claude_failed")


MISSING_CLI = ErrorEvent(
    message="there is no `claude` on PATH: install Claude Code, or set PATH for the worker",
    code="missing_cli",
)


def stalled(seconds: float) -> ErrorEvent:
    """The event for a run that said nothing for too long."""
    return ErrorEvent(
        message=f"claude printed nothing for {seconds:g} s and was stopped",
        code="stalled",
        extra={"recoverable": True},
    )


def not_proposed(seconds: float) -> ErrorEvent:
    """The event for a `claude` that has lost a call which waited for a person."""
    message = f"claude did not propose the call again that waited for a person, for {seconds:g} s. It has not run"
    return ErrorEvent(message=message, code="stalled", extra={"recoverable": True})


def not_answering(error: Exception) -> ErrorEvent:
    """The event for a `claude` that runs but does not answer the SDK."""
    return ErrorEvent(
        message=f"claude does not answer: {error}", code="stalled", extra={"recoverable": True}
    )


def unusable(reason: object) -> ErrorEvent:
    """The event for a `claude` that runs but does not accept the hook by which its calls are recorded."""
    message = f"claude cannot be used: {reason}. Update Claude Code"
    return ErrorEvent(message=message, code="claude_failed")


def cannot_wait(version: str | None) -> ErrorEvent:
    """The event for an agent that waits for people, and a `claude` that is not known to be able to."""
    oldest = ".".join(str(part) for part in OLDEST_TESTED)
    message = (
        f"claude {version or 'of unknown version'} cannot wait for people ('approvals', 'questions' and 'operation' "
        f"of the agent need {oldest} or newer). Update Claude Code"
    )
    return ErrorEvent(message=message, code="claude_failed")


MESSAGES = {
    "tool_deferred_unavailable": "the tool of the call that waited for a person is not available any more"
}
"""Texts for stop reasons that Claude gives none for."""


def not_kept(result: Mapping[str, Any]) -> ErrorEvent:
    """The event for a call that somebody else's hook put off: nobody can answer it."""
    match result.get("deferred_tool_use"):
        case {"name": str(tool)}:
            what = f"a call of {tool}"
        case _:
            what = "a call"
    message = f"a hook that is not nightherd's put off {what} (permissionDecision defer), and nobody can answer it"
    return ErrorEvent(message=message, code="claude_failed")
