"""Rescue: another worker resumes jobs whose worker is gone. Any worker does it for all.

First the worker is given up, which refuses its next heartbeat; then everything its execution started is
killed and seen gone; then the job is settled as its journal says, or waits for its next execution, or ends
when it was lost too often. However many rescue at once, each job is rescued once: the epoch decides
(INV-RUNNING).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from anyio import to_thread

from nightherd.engine.checkpoints.state_files import write_stopped
from nightherd.engine.contexts import ThreadFiles
from nightherd.engine.doctor.record import RepairContext, is_there, list_jobs, recollected
from nightherd.engine.jobs.answer_stream import write_leftover
from nightherd.engine.jobs.lost_execution import catch_up_with_journal, change_after_loss
from nightherd.engine.jobs.settle import record_cancel
from nightherd.engine.sessions.external_turns import (
    LateAnswers,
    count_late_answers,
    write_late_answers,
)
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Applied, Change, EndWorker
from nightherd.model.ids import ExecutionId, JobId, WorkerId, generate_execution_id
from nightherd.model.jobs.changes import LoseExecution
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.recollection import Recollection
from nightherd.model.worker import WorkerStatus, is_lease_over

BATCH = 200
"""Jobs rescued in one transaction, so that a thousand of them do not keep everybody else waiting."""

KillAllMarked = Callable[[Collection[ExecutionId]], Awaitable[Mapping[ExecutionId, str]]]
"""Kills every process of these executions and waits until they are gone; returns which could not be killed, and why."""

OnTrouble = Callable[[str], None]


Resumes = Callable[[Job, timedelta], bool]
"""Whether this job resumes by itself, so long after its last sign of life."""


def always(job: Job, silent: timedelta) -> bool:
    """Every lost job continues."""
    return True


def resumes_of(fleet: Fleet | None) -> Resumes:
    """What the fleet's agents say about jobs of theirs that were lost."""

    def resumes(job: Job, silent: timedelta) -> bool:
        agent = fleet.agents.get(job.agent) if fleet is not None else None
        if agent is None:
            return True
        within = agent.session.resume_timeout
        return agent.session.auto_resume and (within is None or silent <= within)

    return resumes


class RescueTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a rescuer has to know."""

    boot_id: str
    max_restarts: int
    kill_all_marked: KillAllMarked
    resumes: Resumes = always
    """Whether a job that was lost resumes by itself."""


def nobody_else(job: Job) -> bool:
    """Jobs of workers that live are run by them."""
    return False


def missing_from_journal(trouble: str) -> None:
    """Do nothing; the next worker finds the same."""


async def rescue(
    record: RepairContext,
    terms: RescueTerms,
    *,
    is_orphan: Callable[[Job], bool] = nobody_else,
    is_wanted: Callable[[Job], bool] = lambda job: True,
    on_trouble: OnTrouble = missing_from_journal,
    threads: ThreadFiles | None = None,
) -> list[Job]:
    """Give up workers whose lease is over, and rescue every job without a worker; return the jobs as they are now.

    `is_orphan` says of a job whose worker lives that it is not run all the same; `is_wanted` leaves others
    out. A job that cannot be rescued is reported to `on_trouble`, and delays no other. The `state.json`
    of each is written with `threads`: its worker may have died before it wrote the last checkpoint.
    """
    await _give_up(record, terms)
    running = list(list_jobs(record.reader, JobStatus.RUNNING))
    # In this order: a worker is on record before its job runs, and settles the job before it leaves.
    alive = {worker.id for worker in record.reader.live_workers()}
    lost = [job for job in running if WorkerId(job.worker or "") not in alive or is_orphan(job)]
    wanted = [job for job in lost if is_wanted(job)]
    wanted.reverse()  # the first submitted first
    rescued: list[Job] = []
    for first in range(0, len(wanted), BATCH):
        rescued += await _rescue(wanted[first : first + BATCH], record, terms, on_trouble)
    for job in rescued:
        await write_stopped(job.id, record, threads, on_trouble=on_trouble)
    return rescued


async def _give_up(record: RepairContext, terms: RescueTerms) -> None:
    now = record.clock.monotonic()
    over = [
        worker
        for worker in record.reader.live_workers()
        if is_lease_over(
            worker,
            boot_id=terms.boot_id,
            monotonic=now,
            is_process_alive=is_there(worker, record),
        )
    ]
    at = record.clock.now()
    # Refused: it left by itself, or another rescuer was quicker.
    await record.state.apply(
        [EndWorker(worker_id=worker.id, status=WorkerStatus.LOST, at=at) for worker in over]
    )


async def _rescue(
    jobs: Sequence[Job], record: RepairContext, terms: RescueTerms, on_trouble: OnTrouble
) -> list[Job]:
    left = await terms.kill_all_marked([generate_execution_id(job.id, job.epoch) for job in jobs])
    for message in left.values():
        on_trouble(message)
    ended = [job for job in jobs if generate_execution_id(job.id, job.epoch) not in left]
    # Reading journals takes time, and the jobs that this worker runs continue meanwhile.
    known = await to_thread.run_sync(_read, ended, record)
    changes: list[Change] = []
    late: dict[JobId, LateAnswers | None] = {}
    for job, journal in zip(ended, known, strict=True):
        if isinstance(journal, NightherdError):
            on_trouble(f"{job.id}: {journal.message}")
            continue
        try:
            current = await catch_up_with_journal(record, job, journal)
        except RefusedError:
            continue  # something came first: another rescuer, or the worker's own end of it
        found = journal
        if current.cancel_requested_at is not None:
            try:
                found = await to_thread.run_sync(record_cancel, current, journal, record)
            except NightherdError as error:
                on_trouble(f"{job.id}: {error.message}")
                continue
        last = _last_sign(current, found, record)
        change = change_after_loss(
            current,
            found,
            record,
            max_restarts=terms.max_restarts,
            auto_resume=terms.resumes(current, record.clock.now() - last),
        )
        if isinstance(change, LoseExecution):
            change, late[job.id] = await to_thread.run_sync(
                count_late_answers, current, found, change, record
            )
        changes.append(change)
    rescued = await _apply(changes, record, on_trouble)
    for job in rescued:
        await to_thread.run_sync(_write_late, job, late.get(job.id), record, on_trouble)
        if job.is_terminal:
            await to_thread.run_sync(_write_cut_off, job, record, on_trouble)
    return rescued


def _write_late(
    job: Job, answers: LateAnswers | None, record: RepairContext, on_trouble: OnTrouble
) -> None:
    """Write what the runtime of an ended job received after its worker was gone."""
    if answers is None:
        return
    try:
        write_late_answers(job, answers, record)
    except NightherdError as error:
        on_trouble(f"{job.id}: {error.message}")


def _write_cut_off(job: Job, record: RepairContext, on_trouble: OnTrouble) -> None:
    """Record what an ended job was answering when its worker was killed."""
    try:
        write_leftover(job, record)
    except NightherdError as error:
        on_trouble(f"{job.id}: {error.message}")


def _last_sign(job: Job, known: Recollection, record: RepairContext) -> datetime:
    """Return the last sign of life: the latest event, or the start of an execution that wrote none yet.

    Time for which the job was suspended before that start is no silence.
    """
    starts = [began for began, _ in record.reader.spans_of_job(job.id)]
    return max(known.last_at or job.created_at, *starts[-1:], job.created_at)


def _read(jobs: Sequence[Job], record: RepairContext) -> list[Recollection | NightherdError]:
    """What each journal says, or why it cannot be read."""
    known: list[Recollection | NightherdError] = []
    for job in jobs:
        try:
            known.append(recollected(record, job.id))
        except NightherdError as error:
            known.append(error)
    return known


async def _apply(
    changes: Sequence[Change], record: RepairContext, on_trouble: OnTrouble
) -> list[Job]:
    """Together, or where one of them cannot be carried out, each by itself. A refusal came too late."""
    try:
        answers = await record.state.apply(changes)
    except NightherdError as error:
        if len(changes) == 1:
            on_trouble(error.message)
            return []
        each = [await _apply([change], record, on_trouble) for change in changes]
        return [job for jobs in each for job in jobs]
    return [
        answer.job for answer in answers if isinstance(answer, Applied) and answer.job is not None
    ]
