"""What people are told about a turn, in markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from nightherd.model.chat.files import shown_name
from nightherd.model.jobs.job import Job, SuspendReason
from nightherd.model.journal.event import ToolResultEvent, ToolUseEvent
from nightherd.model.journal.message import plain_result
from nightherd.model.text import counted, shorten
from nightherd.model.units import format_usd, rough_duration

CALL_LIMIT = 60
"""Characters of a call that are shown."""
SPEAKING_FIELDS = ("command", "file_path", "path", "pattern", "url", "query", "description")
"""The field of a tool's input that says most about the call, first found."""
CANCELLED = "Cancelled."
DONE = "Done."
CUT_OFF = "*(The answer was cut off here.)*"
NO_ANSWER = "I could not finish this."
COMPACTED = "*The conversation was compacted.*"
RECOVERED = "*The worker was lost; I continue from the record.*"
GOES_ON = "*I go on.*"
WAITS = {
    SuspendReason.APPROVAL: "I wait for a person",
    SuspendReason.LIMIT: "A limit was reached; I wait for a person to raise it",
    SuspendReason.BUDGET: "The budget is used up; I wait for a person to raise it",
    SuspendReason.ERROR: "Something went wrong; I wait for a person",
    SuspendReason.RATE_LIMIT: "The provider limits how much may be asked",
}
_FENCE = re.compile(r"`{3,}")


def call_text(call: ToolUseEvent) -> str:
    """Return a call on one line."""
    given = call.input
    said = ""
    if isinstance(given, Mapping):
        spoken = (given[name] for name in SPEAKING_FIELDS if isinstance(given.get(name), str))
        said = next(spoken, "") or (_plain(given) if given else "")
    name = f"**{shown_name(call.tool_name)}**"
    return f"{name} `{shorten(_one_line(said), CALL_LIMIT)}`" if said else name


def progress_text(call: ToolUseEvent) -> str:
    """Return what is shown while a tool runs."""
    return f"\N{HOURGLASS WITH FLOWING SAND} {call_text(call)}"


def result_text(result: ToolResultEvent, call: ToolUseEvent | None, limit: int) -> str:
    """Return what a tool gave back, at most `limit` characters of it."""
    has_failed = result.success is False
    output = plain_result(result.result).strip()
    if has_failed and result.error and result.error not in output:
        output = f"{result.error}\n{output}".strip()
    head = "A tool" if call is None else call_text(call)
    lead = f"{head} failed" if has_failed else head
    return f"{lead}\n{_fenced(shorten(output, limit))}" if output else f"{lead}: no output"


def wait_text(job: Job, message: str | None) -> str:
    """Return why a job waits and until when; `message` is what its record says about it."""
    words = WAITS[job.suspend_reason] if job.suspend_reason is not None else "I wait"
    why = f": {message.strip().rstrip('.')}" if message and message.strip() else ""
    until = (
        "" if job.not_before is None else f" I go on by myself at {_clock_text(job.not_before)}."
    )
    return f"{words}{why}.{until}"


def behind_text(ahead: Job) -> str:
    """Return that another job of the session goes first."""
    return f"Queued: job `{ahead.id}` of the same session goes first."


def failure_text(job: Job) -> str:
    """Return why a job failed."""
    return f"**That failed:** {job.error or 'no reason is on record'}"


def summary_text(job: Job) -> str:
    """Return what a turn cost."""
    parts = [counted(job.turns, "turn"), f"{job.tokens:,} tokens", format_usd(job.cost_microusd)]
    if job.started_at is not None and job.finished_at is not None:
        parts.append(rough_duration(max(job.finished_at - job.started_at, timedelta())))
    return f"*{' · '.join(parts)}*"


def _plain(given: Mapping[str, Any]) -> str:
    return json.dumps(given, ensure_ascii=False, default=str)


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _fenced(text: str) -> str:
    """The text as a code block: no fence in it ends the block."""
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _clock_text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
