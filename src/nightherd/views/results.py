"""How a job came out, for whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nightherd.model.event import SystemEvent, payload_of
from nightherd.model.failure import details_of
from nightherd.model.job import Job, JobStatus, JobTexts
from nightherd.model.lost import ObservedJob
from nightherd.model.money import to_usd
from nightherd.model.system import Denied, SystemSubtype
from nightherd.ports import Journals
from nightherd.views.jobs import error_of, lost_row, timestamp, usage_of


def denials_of(job: Job, journals: Journals) -> tuple[Denied, ...]:
    """Every call of the job that was not allowed, in order. Reads its whole journal."""
    found = [
        payload_of(event)
        for event in journals.read(job.id, load_blobs=False)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.DENIED
    ]
    return tuple(payload for payload in found if isinstance(payload, Denied))


def result_document(
    job: ObservedJob, texts: JobTexts | None, denials: Sequence[Denied] = ()
) -> dict[str, Any]:
    """What `run --json` ends with."""
    worked = job.worked
    return {
        "job_id": job.id,
        "session_id": job.session_id,
        "session_note": texts.session_note if texts else None,
        "runtime_session_id": job.runtime_session_id,
        "agent": job.agent,
        "status": job.status.value,
        "exit_reason": job.exit_reason.value if job.exit_reason else None,
        "suspend_reason": job.suspend_reason.value if job.suspend_reason else None,
        "resumes_at": timestamp(job.resumes_at),
        "lost": lost_row(job.lost),
        "success": job.status is JobStatus.COMPLETED,
        "summary": (texts.summary if texts else None) or job.summary,
        "duration_seconds": None if worked is None else round(worked.total_seconds(), 3),
        "usage": usage_of(job),
        "cost_usd": to_usd(job.cost_microusd),
        "error": error_of(job),
        "error_details": details_document(job),
        "denials": [msgspec.to_builtins(one) for one in denials],
    }


def details_document(job: Job) -> dict[str, Any] | None:
    """Why the job did not succeed, in the words programs go by; None when it did."""
    found = details_of(job)
    if found is None:
        return None
    return {
        "message": found.message,
        "type": found.type.value,
        "code": found.code,
        "recoverable": found.recoverable,
        "messages_received": found.messages_received,
        "hint": found.hint,
    }
