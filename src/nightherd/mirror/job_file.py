"""`jobs/<id>.yaml`: one job for people, every field of the format in its order (docs/formats/mirror.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from nightherd.files.atomic import atomic_write_file
from nightherd.files.yaml_dump import BlockText, dump_field, dump_line
from nightherd.mirror.envelope import text_of
from nightherd.mirror.layout import MirrorLayout, make_directory
from nightherd.model.ids import JobId, parse_job_id
from nightherd.model.jobs.job import Execution, Job, JobStatus, JobTexts
from nightherd.model.jobs.lost import Lost
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.live_text import is_cut_off
from nightherd.model.journal.message import plain_result
from nightherd.model.text import utc_text
from nightherd.model.units import MicroUsd, to_usd
from nightherd.model.workflows.rows import phase_of
from nightherd.ports import Journals


def job_text(
    job: Job,
    texts: JobTexts | None,
    lost: Lost | None = None,
    executions: Sequence[Execution] = (),
) -> str:
    """The whole file. A suspended job reads `running`, the format's nearest word, and `suspended` why.

    Written line by line, as every job's file is written again and again.
    """
    is_suspended = job.status is JobStatus.SUSPENDED
    waits_until = job.not_before if is_suspended else None
    summary = (texts.summary if texts is not None else None) or job.summary
    lines = (
        dump_line("id", job.id),
        dump_line("agent", job.agent),
        dump_line("schedule", job.schedule),
        dump_line("trigger_type", job.trigger_type.value),
        dump_line("status", _shown_status(job)),
        dump_line("exit_reason", _word(job.exit_reason)),
        dump_line("session_id", shown_session_id(job)),
        dump_line("forked_from", job.forked_from),
        dump_line("started_at", _instant(job.started_at)),
        dump_line("finished_at", _instant(job.finished_at)),
        dump_line("duration_seconds", worked_seconds(job, executions)),
        dump_field("prompt", _prompt(texts)),
        dump_line("summary", summary),
        dump_line("output_file", f"{job.id}.jsonl"),
        dump_line("workflow_run_id", job.workflow_run_id) if job.workflow_run_id else "",
        dump_line("phase", phase_of(job)) if job.workflow_run_id else "",
        dump_line("suspended", _word(job.suspend_reason) or "unknown") if is_suspended else "",
        dump_line("resumes_at", _instant(waits_until)) if waits_until is not None else "",
        "" if lost is None else dump_field("lost", {"since": lost.since, "next": lost.next}),
        dump_line("turns", job.turns),
        dump_line("cost_usd", to_usd(MicroUsd(job.cost_microusd))),
        "usage:\n",
        dump_line("  input_tokens", job.input_tokens),
        dump_line("  output_tokens", job.output_tokens),
        dump_line("  cache_creation_input_tokens", job.cache_creation_input_tokens),
        dump_line("  cache_read_input_tokens", job.cache_read_input_tokens),
        dump_field("error", _error(job)),
    )
    return "".join(lines)


def lines_about(job: Job) -> tuple[str, ...]:
    """Lines that the file has while it shows this row: how the job stands, and what it has used."""
    return (
        dump_line("status", _shown_status(job)),
        dump_line("exit_reason", _word(job.exit_reason)),
        dump_line("started_at", _instant(job.started_at)),
        dump_line("finished_at", _instant(job.finished_at)),
        dump_line("turns", job.turns),
        dump_line("cost_usd", to_usd(MicroUsd(job.cost_microusd))),
    )


def _shown_status(job: Job) -> str:
    return (JobStatus.RUNNING if job.status is JobStatus.SUSPENDED else job.status).value


def _word(value: StrEnum | None) -> str | None:
    return None if value is None else value.value


def _instant(at: datetime | None) -> str | None:
    return None if at is None else utc_text(at)


def _error(job: Job) -> dict[str, str | None] | None:
    return None if job.error is None else {"code": job.error_code, "message": job.error}


def _prompt(texts: JobTexts | None) -> BlockText | None:
    return None if texts is None else BlockText(texts.prompt)


def shown_session_id(job: Job) -> str | None:
    """The runtime's id of the session, which also names the transcript.

    A runtime that has none leaves nightherd's own, once it is sure that there is none.
    """
    return job.runtime_session_id or (job.session_id if job.is_terminal else None)


def worked_seconds(job: Job, executions: Sequence[Execution]) -> float | None:
    """How long its executions took; where none says so, from its start to its end. None unless both are known."""
    if job.started_at is None or job.finished_at is None:
        return None
    known = [execution.duration_ms for execution in executions if execution.duration_ms is not None]
    if known:
        return sum(known) / 1_000
    took = job.finished_at - job.started_at
    return max(round(took.total_seconds(), 3), 0.0)  # the clock may have been set back meanwhile


def write_output_log(root: Path, job_id: JobId, journals: Journals) -> Path:
    """Write the job's record as text and say where; the file is replaced as a whole, private, not synced."""
    path = MirrorLayout(root).output_log(parse_job_id(job_id))
    make_directory(path.parent)
    text = "".join(output_lines(journals.read(job_id)))
    atomic_write_file(path, text.encode(errors="replace"), durable=False)
    return path


def output_lines(events: Iterable[Event]) -> Iterator[str]:
    """The events as lines of text, newlines included; lines that only count what an answer uses are left out."""
    for event in events:
        said = _said(event)
        if said is None:
            continue
        at = f"{event.timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} " if event.timestamp else ""
        first, *rest = said.rstrip("\n").split("\n")
        yield f"{at}{first}\n"
        yield from (f"    {line}\n" for line in rest)


def _said(event: Event) -> str | None:
    match event:
        case AssistantEvent(partial=True, content=content):
            return f"[cut off] {content}" if is_cut_off(event) else None
        case AssistantEvent(content=content, thinking=thinking):
            thought = f"[thinking] {thinking}\n" if thinking else ""
            return f"{thought}[assistant] {content}" if content else thought or None
        case ToolUseEvent(tool_name=name, input=given):
            return f"[tool] {name} {text_of(given)}".rstrip()
        case ToolResultEvent(result=result, success=success, error=error):
            label = "[tool failed]" if success is False else "[tool result]"
            return " ".join(part for part in (label, error or "", plain_result(result)) if part)
        case ErrorEvent(message=message, code=code):
            return f"[error] {f'{code}: ' if code else ''}{message}"
        case SystemEvent(subtype=subtype, content=content, extra=extra):
            return (
                f"[{subtype.value}] {content if content is not None else text_of(extra)}".rstrip()
            )
