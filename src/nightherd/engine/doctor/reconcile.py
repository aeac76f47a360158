"""Reconcile: make rows agree with their journals. The journal is what happened.

Rows that are behind or ahead of their journal are corrected; the rest is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from nightherd.engine.doctor.orphans import recreate_lost_journal
from nightherd.engine.doctor.record import (
    RepairContext,
    apply_changes,
    list_jobs,
    recollected,
    workers_at_work,
)
from nightherd.engine.jobs.lost_execution import catch_up_with_journal, change_after_loss
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CorrectJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.jobs import get_job

Known = Callable[[], Mapping[str, str]]
"""Damage that was acknowledged: its message, and when."""
NOTE = "if there is none, acknowledge the damage"
ACKNOWLEDGE = NextStep(Action.ACKNOWLEDGE_DAMAGE)


DamagedBodies = Callable[[JobId], Iterable[str]]
"""Returns what is wrong with the large bodies of a job's events."""


def no_bodies(job_id: JobId) -> Iterable[str]:
    """Return no damage."""
    return ()


def no_one_knows() -> Mapping[str, str]:
    """Return no acknowledged damage."""
    return {}


MAX_RESTARTS = 5
"""How often a job whose journal is ahead of its row may be restarted."""


def disagreements(record: RepairContext) -> Iterator[Finding]:
    """Yield rows that contradict their journal. Reads the end of every journal."""
    for listed in list_jobs(record.reader, None):
        if _compare(record, listed) is None:
            continue
        # The journal was read after the row: only what a second look finds too is so.
        job = record.reader.find_job(listed.id)
        found = _compare(record, job) if job is not None else None
        if found is not None:
            yield found


async def correct(record: RepairContext, finding: Finding) -> None:
    """Make the row agree with the journal."""
    job = get_job(record.reader, JobId(finding.job_id or ""))
    if _is_garbage(record, job):
        _put_aside(record, job)
    if _is_lost(job) and not record.journals.last(job.id, 1):
        record.journals.put_aside(job.id)
        await recreate_lost_journal(record, job)
        return
    known = recollected(record, job.id)
    if job.status is JobStatus.PENDING and known.epoch > job.epoch:
        job = await catch_up_with_journal(record, job, known)
        await apply_changes(
            record, [change_after_loss(job, known, record, max_restarts=MAX_RESTARTS)]
        )
    elif job.last_seq > known.last_seq:
        clamped = replace(job, last_seq=known.last_seq)
        change = CorrectJob(expected=job, job=clamped, reason="the journal ends earlier")
        await apply_changes(record, [change])


def damaged_journals(
    record: RepairContext,
    on_journal: Callable[[int], None],
    known: Known = no_one_knows,
    damaged_bodies: DamagedBodies = no_bodies,
) -> Iterator[Finding]:
    """Yield journals with lines or large bodies that cannot be read, or with missing numbers. Reads all of them.

    They cannot be repaired. Damage that was acknowledged is still reported, but as a warning.
    """
    noted = known()
    for finding in _damaged(record, on_journal, damaged_bodies):
        at = noted.get(finding.message)
        if at is None:
            yield finding
        else:
            message = f"{finding.message}; noted on {at}"
            yield replace(
                finding, level=Level.WARNING, message=message, remedy=None, next_step=None
            )


def _damaged(
    record: RepairContext, on_journal: Callable[[int], None], damaged_bodies: DamagedBodies
) -> Iterator[Finding]:
    for count, job_id in enumerate(record.journals.job_ids(), 1):
        on_journal(count)
        try:
            found = record.journals.examine(job_id)
        except NightherdError as error:
            yield _unreadable("journals", job_id, error)
            continue
        for bad in found.bad_lines:
            yield Finding(
                check="journals",
                level=Level.PROBLEM,
                message=f"job {job_id}: the line at byte {bad.offset} is not an event: {bad.reason}",
                job_id=job_id,
                remedy=f"restore the file from a backup; the line stays in place, and readers report it; {NOTE}",
                next_step=ACKNOWLEDGE,
            )
        for message in damaged_bodies(job_id):
            yield Finding(
                check="journals",
                level=Level.PROBLEM,
                message=f"job {job_id}: {message}",
                job_id=job_id,
                remedy=f"restore the blob from a backup; everything else of the job can be read; {NOTE}",
                next_step=ACKNOWLEDGE,
            )
        if found.missing:
            yield Finding(
                check="journals",
                level=Level.PROBLEM,
                message=f"job {job_id}: {found.missing} events are missing",
                job_id=job_id,
                remedy=f"restore the file from a backup; {NOTE}",
                next_step=ACKNOWLEDGE,
            )


def _compare(record: RepairContext, job: Job) -> Finding | None:
    try:
        last = record.journals.last(job.id, 1)
    except NightherdError as error:
        return _unreadable("record", job.id, error)
    last_seq, epoch = (last[0].seq, last[0].epoch) if last else (0, 0)
    if _is_garbage(record, job):
        return _found(
            job,
            f"job {job.id}: its journal cannot be read",
            "the file is kept aside and counts as lost; restore it from a backup if you can",
            path=job.output_file,
        )
    if _is_lost(job) and not last:
        return _missing_journal(job)
    if job.last_seq > last_seq:
        again = "" if job.is_terminal else "; missing work is repeated when the job resumes"
        return _found(
            job,
            f"job {job.id} names event {job.last_seq}, its journal ends at {last_seq}",
            f"the row is set to where the journal ends{again}",
        )
    if job.status is JobStatus.PENDING and epoch > job.epoch:
        return _found(
            job,
            f"job {job.id} is at epoch {job.epoch}, its journal at {epoch}",
            "the row catches up with the journal",
        )
    return None


def _found(job: Job, message: str, remedy: str, *, path: str | None = None) -> Finding:
    """Return a finding about a row that can be repaired."""
    return Finding(
        check="record",
        level=Level.PROBLEM,
        message=message,
        path=path,
        job_id=job.id,
        remedy=remedy,
        is_fixable=True,
    )


def _is_garbage(record: RepairContext, job: Job) -> bool:
    """Whether something stands in the journal's place in which nothing can be read."""
    return not record.journals.last(job.id, 1) and record.journals.examine(job.id).is_garbage


def _put_aside(record: RepairContext, job: Job) -> None:
    if not job.is_terminal and workers_at_work(record):
        raise RefusedError("a running worker may be writing it; let it finish, or stop it")
    record.journals.put_aside(job.id)


def _is_lost(job: Job) -> bool:
    """Return whether a job that has no journal had one."""
    return job.is_terminal and job.epoch > 0


def _missing_journal(job: Job) -> Finding:
    if job.last_seq == 0:
        return Finding(
            check="record",
            level=Level.WARNING,
            message=f"job {job.id} ended before anything of it could be recorded",
            job_id=job.id,
            path=job.output_file,
            remedy="check free space and permissions; its row says how it ended",
        )
    return _found(
        job,
        f"job {job.id} ran and its journal is missing",
        "a replacement is written from the row; restore the file from a backup if you can",
        path=job.output_file,
    )


def _unreadable(check: str, job_id: JobId, error: NightherdError) -> Finding:
    return Finding(
        check=check,
        level=Level.PROBLEM,
        message=f"job {job_id}: {error.message}",
        job_id=job_id,
        remedy=error.hint or "restore the file from a backup",
        next_step=error.next_step,
    )
