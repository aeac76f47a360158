"""Reconcile: rows and journals agree again after whatever happened. The journal is what happened.

Jobs whose worker is gone are settled as their journal says, or ended as interrupted when it just stops;
rows that are behind or ahead of their journal are corrected; journals without a row get one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nightherd.engine.doctor import Check
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.agent_state import AgentState, after_job_moved
from nightherd.model.change import (
    AdoptRows,
    Change,
    CorrectJob,
    EndWorker,
    LoseExecution,
    Refused,
    SettleExecution,
)
from nightherd.model.finding import Finding, Level
from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobQuery, JobStatus
from nightherd.model.recollection import Recollection, rebuilt_rows, recollect
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Clock, Journals, Process, StateReader, StateWriter

PAGE = 500

IsAlive = Callable[[Process], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The two memories, and how to tell whether a process still is."""

    state: StateWriter
    reader: StateReader
    journals: Journals
    clock: Clock
    is_alive: IsAlive


def record_checks(record: Record) -> tuple[list[Check], list[Check]]:
    """The checks that rows and journals agree, and those that read every line."""
    quick = [
        Check("stuck", "running jobs", partial(stuck_jobs, record), partial(release, record)),
        Check(
            "record", "rows and journals", partial(disagreements, record), partial(correct, record)
        ),
    ]
    damaged = partial(damaged_journals, record)
    return quick, [Check("journals", "journals, every line", damaged, is_deep=True)]


def workers_at_work(record: Record) -> list[Worker]:
    """The workers that really are there."""
    return [worker for worker in record.reader.live_workers() if _is_there(worker, record)]


def stuck_jobs(record: Record) -> Iterator[Finding]:
    """Jobs that are `running` by their row although their worker is gone."""
    alive = {worker.id for worker in workers_at_work(record)}
    for job in _jobs(record.reader, JobStatus.RUNNING):
        if job.worker not in alive:
            yield Finding(
                check="stuck",
                level=Level.PROBLEM,
                message=f"job {job.id} is running by its row, and its worker is gone",
                job_id=job.id,
                remedy="settled as its journal says, else ended as interrupted",
                is_fixable=True,
            )


async def release(record: Record, finding: Finding) -> None:
    """End a stuck job as its journal says; its worker is given up."""
    job = record.reader.find_job(JobId(finding.job_id or ""))
    if job is None or job.status is not JobStatus.RUNNING:
        return
    known = recollect(record.journals.read(job.id))
    changes = await _caught_up(record, job, known)
    epoch = max(job.epoch, known.epoch)
    at = record.clock.now()
    outcome = known.outcome
    if outcome is not None:
        changes.append(
            SettleExecution(
                job_id=job.id,
                epoch=epoch,
                at=known.last_at or at,
                outcome=outcome,
                last_seq=known.last_seq,
                total=known.tally.totals,
                own=known.own,
                answer=known.tally.answer,
            )
        )
    else:
        changes.append(
            LoseExecution(
                job_id=job.id,
                epoch=epoch,
                at=at,
                reason="its worker is gone",
                max_restarts=0,
                last_seq=known.last_seq,
                total=known.tally.totals,
                own=known.own,
            )
        )
    for worker in record.reader.live_workers():
        if worker.id == job.worker and not _is_there(worker, record):
            changes.append(EndWorker(worker_id=worker.id, status=WorkerStatus.LOST, at=at))
    await _apply(record, changes)


def disagreements(record: Record) -> Iterator[Finding]:
    """Rows and journals that contradict each other. Reads every journal's end."""
    seen: set[str] = set()
    for job in _jobs(record.reader, None):
        seen.add(job.id)
        yield from _compare(record, job)
    for job_id in record.journals.job_ids():
        if job_id not in seen:
            yield Finding(
                check="record",
                level=Level.PROBLEM,
                message=f"job {job_id} has a journal and no row",
                job_id=job_id,
                remedy="its row is made again from its journal",
                is_fixable=True,
            )


def damaged_journals(record: Record) -> Iterator[Finding]:
    """Journals with lines that cannot be read, or with numbers missing. Reads every line there is."""
    for job_id in record.journals.job_ids():
        found = record.journals.examine(job_id)
        for bad in found.bad_lines:
            yield Finding(
                check="journals",
                level=Level.PROBLEM,
                message=f"job {job_id}: the line at byte {bad.offset} is no event: {bad.reason}",
                job_id=job_id,
                remedy="the line stays where it is; readers leave it out and say so",
            )
        if found.missing:
            yield Finding(
                check="journals",
                level=Level.PROBLEM,
                message=f"job {job_id}: {found.missing} events are missing",
                job_id=job_id,
                remedy="restore the file from a backup",
            )


async def correct(record: Record, finding: Finding) -> None:
    """Make the row agree with the journal."""
    job_id = JobId(finding.job_id or "")
    job = record.reader.find_job(job_id)
    known = recollect(record.journals.read(job_id))
    if job is None:
        await adopt_journal(record, job_id, known)
        return
    if job.status is JobStatus.PENDING:
        await _apply(record, await _caught_up(record, job, known))
        return
    fixed = replace(job, last_seq=min(job.last_seq, known.last_seq))
    change = CorrectJob(expected=job, job=fixed, reason="the journal ends earlier")
    await _apply(record, [change])


async def adopt_journal(record: Record, job_id: JobId, known: Recollection) -> None:
    """Rows for a job that only its journal remembers."""
    rebuilt = rebuilt_rows(known)
    if rebuilt is None:
        raise NightherdError(f"the journal of {job_id} does not say whose job it was")
    job = rebuilt.job
    agent = after_job_moved(AgentState(name=job.agent), job, None)
    session = () if rebuilt.session is None else (rebuilt.session,)
    rows = (*session, job, rebuilt.texts, *rebuilt.executions, agent)
    await _apply(record, [AdoptRows(rows=rows, source="journal")])


def _compare(record: Record, job: Job) -> Iterator[Finding]:
    last = record.journals.last(job.id, 1)
    last_seq, epoch = (last[0].seq, last[0].epoch) if last else (0, 0)
    if job.is_terminal and job.epoch > 0 and not last:
        yield Finding(
            check="record",
            level=Level.PROBLEM,
            message=f"job {job.id} ran and its journal is missing",
            job_id=job.id,
            path=job.output_file,
            remedy="restore the file from a backup; the row still has the summary",
        )
    elif job.last_seq > last_seq:
        yield Finding(
            check="record",
            level=Level.PROBLEM,
            message=f"job {job.id} names event {job.last_seq}, its journal ends at {last_seq}",
            job_id=job.id,
            remedy="the row is set to where the journal ends",
            is_fixable=True,
        )
    elif job.status is JobStatus.PENDING and epoch > job.epoch:
        yield Finding(
            check="record",
            level=Level.PROBLEM,
            message=f"job {job.id} is at epoch {job.epoch}, its journal at {epoch}",
            job_id=job.id,
            remedy="the row catches up with the journal",
            is_fixable=True,
        )


async def _caught_up(record: Record, job: Job, known: Recollection) -> list[Change]:
    """What brings the row to the journal's epoch, where the ledger's last changes were lost."""
    if known.epoch <= job.epoch:
        return []
    owner = known.owners[-1].worker if known.owners else job.worker
    ahead = replace(job, epoch=known.epoch, worker=owner)
    return [CorrectJob(expected=job, job=ahead, reason="the journal is at a later epoch")]


async def _apply(record: Record, changes: Sequence[Change]) -> None:
    for answer in await record.state.apply(changes):
        if isinstance(answer, Refused):
            raise RefusedError(answer.message)


def _jobs(reader: StateReader, status: JobStatus | None) -> Iterator[Job]:
    before: int | None = None
    while True:
        page = reader.list_jobs(JobQuery(status=status, before=before, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].number


def _is_there(worker: Worker, record: Record) -> bool:
    return record.is_alive(
        Process(
            host=worker.host,
            pid=worker.pid,
            started=worker.process_started,
            boot_id=worker.boot_id,
        )
    )
