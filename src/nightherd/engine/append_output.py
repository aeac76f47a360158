"""Appending output to a job that no worker has, by a program.

The lines carry the epoch that the job has, so a worker that starts meanwhile shuts them out (INV-FENCE). They are
output and no part of the conversation: no runtime is sent them, and they count neither as turns nor as cost.
"""

from __future__ import annotations

from collections.abc import Callable

from nightherd.engine.beginning import header_of
from nightherd.engine.record import Record
from nightherd.errors import FencedError, JobNotFoundError, RefusedError
from nightherd.model.event import Event, describe, mark_appended
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.job import Job, JobStatus
from nightherd.views.jobs import get_job


def append_output(record: Record, job_id: JobId, event: Event, version: str) -> Event:
    """Append `event` to the job's journal and return it as written; it survives a power cut.

    `RefusedError` unless the job has not started yet, or has ended: a job in between resumes from its journal.
    """
    job = get_job(record.reader, job_id)
    _check(job)
    marked = mark_appended(record.secrets.mask_event(event))
    execution = generate_execution_id(job.id, job.epoch)
    try:
        journal = record.journals.open(job.id, epoch=job.epoch, execution=execution)
        try:
            if journal.last_seq == 0:
                _begin(record, job, journal.append, version)
            written = journal.append(marked)
            journal.sync()
        finally:
            journal.close()
    except FencedError as error:
        raise _refused(get_job(record.reader, job_id)) from error
    return written


def _begin(record: Record, job: Job, append: Callable[[Event], Event], version: str) -> None:
    """Write the first line of the journal, which is the job itself."""
    texts = record.reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"there is no job {job.id}")
    session = record.reader.find_session(job.session_id) if job.session_id is not None else None
    append(describe(header_of(job, texts, session, version)))


def _check(job: Job) -> None:
    is_untouched = job.status is JobStatus.PENDING and job.epoch == 0
    if not (is_untouched or job.is_terminal):
        raise _refused(job)


def _refused(job: Job) -> RefusedError:
    if job.status is JobStatus.RUNNING:
        reason = f"worker {job.worker} has it"
    else:
        reason = "it resumes from its output"
    return RefusedError(
        f"cannot append output to job {job.id}: it is {job.status}, and {reason}",
        hint="append before the job starts or after it has ended",
    )
