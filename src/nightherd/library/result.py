"""RunnerResult: how a job came out, for the program that asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightherd.errors import RunnerError
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.failure import RunnerErrorDetails, details_of, error_of
from nightherd.model.jobs.job import JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import Denied, HookRan, Warned
from nightherd.ports import Journals, StateReader
from nightherd.views.job_document import troubles_of

LOOK_BACK = 64
"""Events at the end of a record among which its error is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerResult:
    """How it came out. A job that is suspended is no success, and has no error either."""

    success: bool
    job_id: JobId
    job: ObservedJob
    session_id: SessionId | None = None
    runtime_session_id: str | None = None
    session_note: str | None = None
    """Why it did not continue in the session it would have had; None when it did, or there was none."""
    summary: str | None = None
    error: RunnerError | None = None
    """What a caller may raise."""
    error_details: RunnerErrorDetails | None = None
    duration_seconds: float | None = None
    denials: tuple[Denied, ...] = ()
    """Every call that was not allowed, in order."""
    failed_hooks: tuple[HookRan, ...] = ()
    """Every hook that failed, in order."""


def result_of(job: ObservedJob, reader: StateReader, journals: Journals) -> RunnerResult:
    """The result of a job as it stands."""
    texts = reader.find_texts(job.id)
    took = job.worked if job.finished_at is not None else None
    last = journals.last(job.id, LOOK_BACK) if job.error is not None else ()
    troubles = troubles_of(job, journals)
    return RunnerResult(
        success=job.status is JobStatus.COMPLETED,
        job_id=job.id,
        job=job,
        session_id=job.session_id,
        runtime_session_id=job.runtime_session_id,
        session_note=texts.session_note if texts is not None else None,
        summary=(texts.summary if texts is not None else None) or job.summary,
        error=error_of(job, _unread(last)),
        error_details=details_of(job, _stack(last)),
        duration_seconds=None if took is None else took.total_seconds(),
        denials=troubles.denials,
        failed_hooks=troubles.failed_hooks,
    )


def _stack(last: Sequence[Event]) -> str | None:
    """Where in a program of ours it went wrong, if it did."""
    stacks = [event.stack for event in last if isinstance(event, ErrorEvent) and event.stack]
    return stacks[-1] if stacks else None


def _unread(last: Sequence[Event]) -> object:
    """Return the last output that could not be parsed, in bounded length."""
    payloads = [payload_of(event) for event in last if isinstance(event, SystemEvent)]
    raws = [payload.raw for payload in payloads if isinstance(payload, Warned) and payload.raw]
    return raws[-1] if raws else None
