"""Claude's `system` messages that are worth a line, each with what it becomes; and those that are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nightherd.model.journal.event import ErrorEvent
from nightherd.model.journal.system import (
    AuthStatus,
    CompactBoundary,
    Denied,
    HookRan,
    Init,
    Payload,
    ToolProgress,
    Warned,
)
from nightherd.runtimes.claude.gate import UNANNOUNCED, unannounced

Message = Mapping[str, Any]
News = tuple[Payload, str | None]
"""What it is about, and the text that goes with it."""


def _retry(message: Message) -> News:
    status = message.get("error_status") or "no answer"
    delay = message.get("retry_delay_ms")
    wait = f" in {delay / 1000:.1f} s" if isinstance(delay, int | float) else ""
    tries = f"{message.get('attempt')} of {message.get('max_retries')}"
    text = f"the API refused ({status}, {message.get('error')}); trying again{wait}, {tries}"
    return Warned(code="api_retry", raw={"status": message.get("error_status")}), text


def _denied(message: Message) -> News:
    reason = _text(message, "message") or "not allowed"
    return Denied(
        tool_name=_text(message, "tool_name") or "",
        reason=reason,
        tool_use_id=_text(message, "tool_use_id"),
    ), reason


def _compacted(message: Message) -> News:
    facts = message.get("compact_metadata")
    known = facts if isinstance(facts, Mapping) else {}
    before = known.get("pre_tokens")
    return CompactBoundary(
        trigger=_text(known, "trigger"), tokens_before=before if isinstance(before, int) else None
    ), None


def _hook(message: Message) -> News:
    return HookRan(
        name=_text(message, "hook_name") or "",
        event=_text(message, "hook_event") or "",
        success=message.get("outcome") == "success" or message.get("exit_code") == 0,
        output=_text(message, "output"),
    ), None


def _task_started(message: Message) -> News | None:
    """A background task and the call that started it; what runs in the foreground is its call."""
    if message.get("is_backgrounded") is not True:
        return None
    task = _text(message, "description") or _text(message, "task_type") or "a task"
    return ToolProgress(
        tool_use_id=_text(message, "tool_use_id"), task_id=_text(message, "task_id"), task=task
    ), f"background task started: {task}"


def _task_ended(message: Message) -> News:
    """A background task's end, with the call that started it."""
    said = f"background task {message.get('status')}: {message.get('summary')}"
    return ToolProgress(
        tool_use_id=_text(message, "tool_use_id"), task_id=_text(message, "task_id")
    ), said


def _warned(message: Message) -> News:
    said = _text(message, "content") or _text(message, "message")
    return Warned(code=str(message.get("subtype"))), said


def progress_of(message: Message) -> ToolProgress:
    """How long a tool has been running."""
    seconds = message.get("elapsed_time_seconds")
    elapsed = round(seconds * 1000) if isinstance(seconds, int | float) else None
    return ToolProgress(tool_use_id=_text(message, "tool_use_id"), elapsed_ms=elapsed)


def auth_status_of(message: Message) -> tuple[AuthStatus, str | None]:
    """Whether Claude is logged in, and what it says about it."""
    error, output = _text(message, "error"), message.get("output")
    is_going_on = message.get("isAuthenticating") is True
    lines = [one for one in output if isinstance(one, str)] if isinstance(output, list) else []
    is_authenticated = False if error is not None else None if is_going_on else True
    text = error if error is not None else "\n".join(lines) or None
    return AuthStatus(is_authenticated=is_authenticated), text


def error_of(message: Message) -> ErrorEvent:
    """What Claude says went wrong."""
    error = message.get("error")
    text = error.get("message") if isinstance(error, Mapping) else error
    return ErrorEvent(message=str(text or message.get("message")), code="claude_failed")


def init_of(message: Message, runtime: str) -> Init:
    """What Claude says about itself."""
    tools = message.get("tools")
    return Init(
        runtime=runtime,
        runtime_session_id=_text(message, "session_id"),
        model=_text(message, "model"),
        working_directory=_text(message, "cwd"),
        tools=[str(tool) for tool in tools] if isinstance(tools, list) else None,
    )


def _text(message: Message, name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) else None


NEWS: Mapping[str, Callable[[Message], News | None]] = {
    "api_retry": _retry,
    "permission_denied": _denied,
    "compact_boundary": _compacted,
    "hook_response": _hook,
    "task_started": _task_started,
    "task_notification": _task_ended,
    UNANNOUNCED: unannounced,
    "model_fallback": _warned,
    "model_refusal_no_fallback": _warned,
    "informational": _warned,
    "notification": _warned,
    "session_writes_lost": _warned,
}

SILENT = frozenset(
    {
        "status", "thinking_tokens", "task_progress", "task_updated", "hook_started",
        "hook_progress", "session_state_changed", "session_title_changed", "files_persisted",
        "local_command_output", "commands_changed", "memory_recall", "post_turn_summary",
        "turn_preempted", "keep_alive", "control_request", "control_response", "prompt_suggestion",
        "tool_use_summary", "conversation_reset", "ui_invalidate", "attachment", "progress",
        "command_lifecycle",
    }
)  # fmt: skip
"""Types and subtypes that say nothing the other messages do not say."""
