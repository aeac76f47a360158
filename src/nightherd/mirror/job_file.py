"""`jobs/<id>.yaml`: one job for people, every field of the format in its order (docs/formats/mirror.md)."""

from __future__ import annotations

from datetime import datetime

from nightherd.files.yaml_dump import BlockText, dump_field, dump_line
from nightherd.mirror.images import JobImage, TextsImage
from nightherd.mirror.memory import LostImage
from nightherd.model.job import JobStatus
from nightherd.model.money import MicroUsd, to_usd


def job_text(
    job: JobImage,
    texts: TextsImage | None,
    lost: LostImage | None = None,
    worked_ms: int | None = None,
) -> str:
    """The whole file. A suspended job reads `running`, the format's nearest word, and `suspended` why.

    Written line by line, as every job's file is written again and again.
    """
    is_suspended = job.status == JobStatus.SUSPENDED
    took = seconds_between(job.started_at, job.finished_at)
    if took is not None and worked_ms is not None:
        took = worked_ms / 1_000
    summary = (texts.summary if texts is not None else None) or job.summary
    lines = (
        dump_line("id", job.id),
        dump_line("agent", job.agent),
        dump_line("schedule", job.schedule),
        dump_line("trigger_type", job.trigger_type),
        dump_line("status", JobStatus.RUNNING.value if is_suspended else job.status),
        dump_line("exit_reason", job.exit_reason),
        dump_line("session_id", shown_session_id(job)),
        dump_line("forked_from", job.forked_from),
        dump_line("started_at", job.started_at),
        dump_line("finished_at", job.finished_at),
        dump_line("duration_seconds", took),
        dump_field("prompt", _prompt(texts)),
        dump_line("summary", summary),
        dump_line("output_file", f"{job.id}.jsonl"),
        dump_line("suspended", job.suspend_reason or "unknown") if is_suspended else "",
        dump_line("resumes_at", job.not_before) if is_suspended and job.not_before else "",
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


def lines_about(job: JobImage) -> tuple[str, ...]:
    """Lines that the file has while it shows this row: how the job stands, and what it has used."""
    is_suspended = job.status == JobStatus.SUSPENDED
    return (
        dump_line("status", JobStatus.RUNNING.value if is_suspended else job.status),
        dump_line("exit_reason", job.exit_reason),
        dump_line("started_at", job.started_at),
        dump_line("finished_at", job.finished_at),
        dump_line("turns", job.turns),
        dump_line("cost_usd", to_usd(MicroUsd(job.cost_microusd))),
    )


def _error(job: JobImage) -> dict[str, str | None] | None:
    return None if job.error is None else {"code": job.error_code, "message": job.error}


def _prompt(texts: TextsImage | None) -> BlockText | None:
    return None if texts is None or texts.prompt is None else BlockText(texts.prompt)


def shown_session_id(job: JobImage) -> str | None:
    """The runtime's id of the session, which also names the transcript.

    A runtime that has none leaves nightherd's own, once it is sure that there is none.
    """
    return job.runtime_session_id or (job.session_id if job.is_ended else None)


def seconds_between(started_at: str | None, finished_at: str | None) -> float | None:
    """How long it took from its start to its end, to the millisecond; None unless both are known."""
    if started_at is None or finished_at is None:
        return None
    took = datetime.fromisoformat(finished_at) - datetime.fromisoformat(started_at)
    return max(round(took.total_seconds(), 3), 0.0)  # the clock may have been set back meanwhile
