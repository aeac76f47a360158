"""Journal events as the lines of a transcript: the envelope shape that Claude's own transcripts have.

A model's message becomes one `assistant` line with its text and tool calls, tool results and prompts
become `user` lines, an error an `assistant` line that says so. Thinking and the run's own events have no
line. Each line names the job and the event it ends with, so that none is ever written twice.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from nightherd.model.jobs.job import Execution, ExitReason, Job, JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_message,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.text import utc_text
from nightherd.model.units import MicroUsd, to_usd
from nightherd.model.usage import Usage

DISPLAY_LIMIT = 64 * 1024
"""Characters of one text that a transcript shows; the journal has them all."""

Line = dict[str, Any]


class Translator:
    """Turns one job's events, in order, into lines. `cursor` is the event up to which nothing is missing."""

    def __init__(self, job_id: str, session: str, *, after: int, model: str | None) -> None:
        self.cursor = after
        self.session = session
        self.model = model
        self._job_id = job_id
        self._open: list[Event] = []

    def take(self, event: Event) -> list[Line]:
        """The lines that are complete with `event`; mostly none or one."""
        lines = self._translate(event)
        # Of a message that has not ended nothing is written: it is read again, whole, next time.
        self.cursor = self._open[0].seq - 1 if self._open else event.seq
        return lines

    def _translate(self, event: Event) -> list[Line]:
        if isinstance(event, ErrorEvent):
            return [self._error(event)]
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.INIT:
            self.model = (event.extra or {}).get("model") or self.model
        if not is_message(event):
            return []
        if self._open and not _belong_together(self._open[0], event):
            self._open = []  # its execution was lost in the middle of it: partial output, not history
        self._open.append(event)
        if not event.end and event.message is not None:
            return []
        group, self._open = self._open, []
        return self._message(group)

    def _message(self, group: list[Event]) -> list[Line]:
        first, last = group[0], group[-1]
        if isinstance(first, SystemEvent):
            return [self._line(last, "user", role="user", content=cut(first.content or ""))]
        blocks = [block for event in group for block in _blocks(event)]
        if not blocks:
            return []
        if isinstance(first, ToolResultEvent):
            return [self._line(last, "user", role="user", content=blocks)]
        message: Line = {"role": "assistant", "model": self.model, "content": blocks}
        usage = next((e.usage for e in group if isinstance(e, AssistantEvent) and e.usage), None)
        if usage is not None:
            message["usage"] = _tokens(usage)
        return [self._line(last, "assistant", **message)]

    def _error(self, event: ErrorEvent) -> Line:
        content = [{"type": "text", "text": cut(event.message)}]
        line = self._line(event, "assistant", role="assistant", model=self.model, content=content)
        return {**line, "isApiErrorMessage": True, "error": event.code}

    def _line(self, event: Event, kind: str, **message: Any) -> Line:
        line: Line = {
            "type": kind,
            "message": message,
            "timestamp": event.timestamp,
            "sessionId": self.session,
        }
        if event.uuid is not None:
            line["uuid"] = event.uuid
        if event.parent_tool_use_id is not None:
            line["parent_tool_use_id"] = event.parent_tool_use_id
        return {**line, "jobId": self._job_id, "seq": event.seq}


def result_line(job: Job, execution: Execution | None, *, session: str, result: str | None) -> Line:
    """The line a job's transcript ends with: its result."""
    succeeded = job.status is JobStatus.COMPLETED
    return {
        "type": "result",
        "subtype": "success" if succeeded else _failure(job.exit_reason),
        "is_error": not succeeded,
        "num_turns": job.turns,
        "result": cut(result) if result is not None else None,
        "total_cost_usd": to_usd(MicroUsd(job.cost_microusd)),
        "total_input_tokens": job.input_tokens,
        "total_output_tokens": job.output_tokens,
        "total_cache_creation_input_tokens": job.cache_creation_input_tokens,
        "total_cache_read_input_tokens": job.cache_read_input_tokens,
        "duration_ms": execution.duration_ms if execution is not None else None,
        "stop_reason": execution.stop_reason if execution is not None else None,
        "timestamp": utc_text(job.finished_at) if job.finished_at is not None else None,
        "sessionId": session,
        "jobId": job.id,
        "seq": job.last_seq,
    }


def encode_line(line: Line) -> bytes:
    """`line` as bytes, newline included."""
    return msgspec.json.encode(line) + b"\n"


def cut(text: str, limit: int = DISPLAY_LIMIT) -> str:
    """`text` as far as it is shown, and how much of it is not."""
    return text if len(text) <= limit else f"{text[:limit]}…[truncated {len(text) - limit} chars]"


def _failure(exit_reason: ExitReason | None) -> str:
    """How a run failed, in the words of the format; its own word for a plain error is longer."""
    if exit_reason is None or exit_reason is ExitReason.ERROR:
        return "error_during_execution"
    return f"error_{exit_reason.value}"


def _belong_together(first: Event, event: Event) -> bool:
    if isinstance(first, ErrorEvent) or isinstance(event, ErrorEvent):
        return False
    return (first.execution, first.message) == (event.execution, event.message)


def _blocks(event: Event) -> list[Line]:
    match event:
        case AssistantEvent(content=content):
            return [{"type": "text", "text": cut(content)}] if content else []
        case ToolUseEvent(tool_use_id=call, tool_name=name, input=given):
            return [{"type": "tool_use", "id": call, "name": name, "input": _cut_inside(given)}]
        case ToolResultEvent(tool_use_id=call, result=result, error=error):
            failed = event.success is False
            text = text_of(result if result is not None or error is None else error)
            block = {"type": "tool_result", "tool_use_id": call, "content": cut(text)}
            return [{**block, "is_error": True} if failed else block]
        case _:
            return []


def text_of(value: Any) -> str:
    """A value as text: itself, or its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _cut_inside(value: Any) -> Any:
    """`value` with every text in it cut."""
    match value:
        case str():
            return cut(value)
        case dict():
            return {name: _cut_inside(inner) for name, inner in value.items()}
        case list():
            return [_cut_inside(inner) for inner in value]
        case _:
            return value


def _tokens(usage: Usage) -> Line:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    }
