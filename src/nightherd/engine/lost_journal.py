"""Lost journals: a job that ended and whose record is gone gets one that says so.

Nothing is made up: it holds what the rows still know (who it was, how it ended, what it cost, its summary) and
that the rest was lost. Whoever finds the file in a backup puts it in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import msgspec

from nightherd.engine.beginning import header_of
from nightherd.engine.record import Record, apply_changes
from nightherd.model.change import CorrectJob
from nightherd.model.event import ErrorEvent, Event, describe
from nightherd.model.ids import generate_execution_id
from nightherd.model.job import Job, JobStatus, JobTexts
from nightherd.model.outcome import JOURNAL_LOST, usage_of
from nightherd.model.session import Session
from nightherd.model.system import Complete, End, ExecutionStarted, Warned

UNKNOWN = "unknown"


async def stand_in(record: Record, job: Job) -> None:
    """Write the journal of an ended job anew, as far as its rows know it, and let the row name its end."""
    execution = generate_execution_id(job.id, job.epoch)
    with closing(record.journals.open(job.id, epoch=job.epoch, execution=execution)) as journal:
        session = record.reader.find_session(job.session_id) if job.session_id is not None else None
        for event in _events(job, record.reader.find_texts(job.id), session):
            journal.append(event)
        journal.sync()
        after = replace(job, last_seq=journal.last_seq)
    change = CorrectJob(expected=job, job=after, reason="its journal was lost")
    await apply_changes(record, [change])


def _events(job: Job, texts: JobTexts | None, session: Session | None) -> Iterator[Event]:
    known = texts if texts is not None else JobTexts(job_id=job.id, prompt="")
    yield describe(header_of(job, known, session, UNKNOWN))
    yield describe(ExecutionStarted(worker=job.worker or UNKNOWN))
    text = f"the journal of this job was lost with its {job.last_seq} events; this is what its row knows"
    yield describe(Warned(code=JOURNAL_LOST), text)
    usage = usage_of(job)
    if job.status is JobStatus.COMPLETED:
        yield describe(Complete(usage=usage, summary=known.summary or job.summary))
    elif job.error is not None:
        extra = {"usage": msgspec.to_builtins(usage)}
        yield ErrorEvent(message=job.error, code=job.error_code, extra=extra)
    reason = job.exit_reason.value if job.exit_reason is not None else UNKNOWN
    yield describe(End(status=job.status.value, exit_reason=reason))
