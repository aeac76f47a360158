"""How a job came out, for whoever asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nightherd.errors import JournalError
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.failure import details_of
from nightherd.model.jobs.job import Job, JobStatus, JobTexts
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.live_text import is_about_answer, is_cut_off
from nightherd.model.journal.system import Denied, HookRan, Payload, SystemSubtype
from nightherd.model.units import to_usd
from nightherd.ports import FleetReader, Journals
from nightherd.views.jobs import error_of, lost_row, timestamp, usage_of

TROUBLES = (SystemSubtype.DENIED, SystemSubtype.HOOK)
"""The events that troubles are read from."""


class Troubles(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in a job beside its outcome, in order."""

    denials: tuple[Denied, ...] = ()
    """The calls that were not allowed."""
    failed_hooks: tuple[HookRan, ...] = ()
    cut_off: str | None = None
    """What had come of the last answer, when it was cut off."""
    journal_error: str | None = None
    """Why the journal cannot be read; then neither is known."""


NO_TROUBLES = Troubles()


def troubles_of(job: Job, journals: Journals) -> Troubles:
    """Return the denied calls and failed hooks of the job. Reads its whole journal, once."""
    try:
        return troubles_in(journals.read(job.id, load_blobs=False))
    except JournalError as error:
        return Troubles(journal_error=error.message)


def troubles_in(events: Iterable[Event]) -> Troubles:
    """Return the denied calls, the failed hooks and the cut-off answer among `events`."""
    payloads: list[Payload] = []
    cut_off: str | None = None
    for event in events:
        if isinstance(event, SystemEvent):
            if event.subtype in TROUBLES:
                payloads.append(payload_of(event))
        elif isinstance(event, AssistantEvent) and is_about_answer(event):
            cut_off = event.content if is_cut_off(event) else None
    return Troubles(
        cut_off=cut_off,
        denials=tuple(one for one in payloads if isinstance(one, Denied)),
        failed_hooks=tuple(
            one for one in payloads if isinstance(one, HookRan) and one.success is False
        ),
    )


def result_document(
    job: ObservedJob, texts: JobTexts | None, troubles: Troubles = NO_TROUBLES
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
        **troubles_document(troubles),
    }


def troubles_document(troubles: Troubles) -> dict[str, Any]:
    """Return what went wrong beside the outcome, each as the event says it; or why that is not known."""
    return {
        "cut_off": troubles.cut_off,
        "denials": [msgspec.to_builtins(one) for one in troubles.denials],
        "failed_hooks": [msgspec.to_builtins(one) for one in troubles.failed_hooks],
        "journal_error": troubles.journal_error,
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


TAIL = 64
"""Events at the end of a journal among which the hooks of the job are."""


class FailedHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that failed, and the job whose hook it is."""

    agent: str
    job_id: JobId
    hook: HookRan


def failed_hooks(
    reader: FleetReader, journals: Journals, declared: Mapping[str, Agent]
) -> Sequence[FailedHook]:
    """Return the hooks that failed of the last job of each declared agent with hooks.

    Reads only the end of those journals: the cost depends on the number of agents, not on their history.
    """
    return [
        FailedHook(agent=state.name, job_id=state.last_job, hook=hook)
        for state in reader.list_agents()
        if state.last_job is not None and state.name in declared and declared[state.name].hooks
        for hook in _failed_in(journals, state.last_job)
    ]


def _failed_in(journals: Journals, job_id: JobId) -> Sequence[HookRan]:
    """The failed hooks of one job. A journal that cannot be read hides its own only: `doctor` reports it."""
    try:
        return troubles_in(journals.last(job_id, TAIL)).failed_hooks
    except JournalError:
        return ()


def failed_hook_row(failed: FailedHook) -> dict[str, Any]:
    """Return a failed hook as plain data."""
    return {
        "agent": failed.agent,
        "job_id": failed.job_id,
        "name": failed.hook.name,
        "event": failed.hook.event,
        "error": failed.hook.error,
    }
