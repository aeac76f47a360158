"""`jobs/<id>/output.log`: a job's whole record as text, written when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from pathlib import Path

from nightherd.files.atomic import atomic_write_file
from nightherd.mirror.envelope import text_of
from nightherd.mirror.layout import MirrorLayout, make_directory
from nightherd.model.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.ids import JobId, parse_job_id
from nightherd.model.live_text import is_cut_off
from nightherd.model.result_text import plain_result
from nightherd.ports import Journals


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
