"""RunnerResult: how a job came out, for the program that asked for it."""

from __future__ import annotations

from dataclasses import dataclass

from nightherd.errors import NightherdError
from nightherd.model.event import ErrorEvent, SystemEvent, payload_of
from nightherd.model.failure import RunnerErrorDetails, details_of, error_of
from nightherd.model.ids import JobId, SessionId
from nightherd.model.job import Job, JobStatus
from nightherd.model.system import Denied, SystemSubtype
from nightherd.ports import Journals, StateReader

LOOK_BACK = 64
"""Events at the end of a record among which its error is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerResult:
    """How it came out. A job that is suspended is no success, and has no error either."""

    success: bool
    job_id: JobId
    job: Job
    session_id: SessionId | None = None
    runtime_session_id: str | None = None
    summary: str | None = None
    error: NightherdError | None = None
    """What a caller may raise."""
    error_details: RunnerErrorDetails | None = None
    duration_seconds: float | None = None
    denials: tuple[Denied, ...] = ()
    """Every call that was not allowed, in order."""


def result_of(job: Job, reader: StateReader, journals: Journals) -> RunnerResult:
    """The result of a job as it stands."""
    texts = reader.find_texts(job.id)
    ended = job.finished_at
    took = job.duration(ended) if ended is not None else None
    return RunnerResult(
        success=job.status is JobStatus.COMPLETED,
        job_id=job.id,
        job=job,
        session_id=job.session_id,
        runtime_session_id=job.runtime_session_id,
        summary=(texts.summary if texts is not None else None) or job.summary,
        error=error_of(job),
        error_details=details_of(job, _stack(job, journals)),
        duration_seconds=None if took is None else took.total_seconds(),
        denials=_denials(job, journals),
    )


def _denials(job: Job, journals: Journals) -> tuple[Denied, ...]:
    found = [
        payload_of(event)
        for event in journals.read(job.id, load_blobs=False)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.DENIED
    ]
    return tuple(payload for payload in found if isinstance(payload, Denied))


def _stack(job: Job, journals: Journals) -> str | None:
    """Where in a program of ours it went wrong, if it did."""
    if job.error is None:
        return None
    stacks = [
        event.stack
        for event in journals.last(job.id, LOOK_BACK)
        if isinstance(event, ErrorEvent) and event.stack is not None
    ]
    return stacks[-1] if stacks else None
