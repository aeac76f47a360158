"""`jobs/<id>.yaml`: one job for people, every field of the format in its order (docs/formats/mirror.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nightherd.files.yaml_dump import BlockText, dump_yaml
from nightherd.mirror.images import JobImage, TextsImage
from nightherd.model.job import JobStatus
from nightherd.model.money import MicroUsd, to_usd


def job_text(job: JobImage, texts: TextsImage | None) -> str:
    """The whole file."""
    return dump_yaml(job_document(job, texts))


def job_document(job: JobImage, texts: TextsImage | None) -> dict[str, Any]:
    """What the file says. A suspended job reads `running`, the format's nearest word, and `suspended` why."""
    is_suspended = job.status == JobStatus.SUSPENDED
    document: dict[str, Any] = {
        "id": job.id,
        "agent": job.agent,
        "schedule": job.schedule,
        "trigger_type": job.trigger_type,
        "status": JobStatus.RUNNING.value if is_suspended else job.status,
        "exit_reason": job.exit_reason,
        "session_id": shown_session_id(job),
        "forked_from": job.forked_from,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "duration_seconds": seconds_between(job.started_at, job.finished_at),
        "prompt": _prompt(texts),
        "summary": (texts.summary if texts is not None else None) or job.summary,
        "output_file": f"{job.id}.jsonl",
    }
    if is_suspended:
        document["suspended"] = job.suspend_reason or "unknown"
    document["turns"] = job.turns
    document["cost_usd"] = to_usd(MicroUsd(job.cost_microusd))
    document["usage"] = {
        "input_tokens": job.input_tokens,
        "output_tokens": job.output_tokens,
        "cache_creation_input_tokens": job.cache_creation_input_tokens,
        "cache_read_input_tokens": job.cache_read_input_tokens,
    }
    document["error"] = (
        None if job.error is None else {"code": job.error_code, "message": job.error}
    )
    return document


def _prompt(texts: TextsImage | None) -> BlockText | None:
    return None if texts is None or texts.prompt is None else BlockText(texts.prompt)


def shown_session_id(job: JobImage) -> str | None:
    """The runtime's id of the session, which also names the transcript.

    A runtime that has none leaves nightherd's own, once it is sure that there is none.
    """
    return job.runtime_session_id or (job.session_id if job.is_ended else None)


def seconds_between(started_at: str | None, finished_at: str | None) -> float | None:
    """How long it took, to the millisecond; None unless both are known."""
    if started_at is None or finished_at is None:
        return None
    took = datetime.fromisoformat(finished_at) - datetime.fromisoformat(started_at)
    return round(took.total_seconds(), 3)
