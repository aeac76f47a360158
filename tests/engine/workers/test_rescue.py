"""Rescue: who counts as gone, what becomes of their jobs, and that it happens once."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.yard import Yard
from nightherd.engine.jobs.settle import last_line
from nightherd.engine.workers.rescue import BATCH, rescue
from nightherd.errors import JournalError
from nightherd.model.ids import ExecutionId, WorkerId, generate_execution_id
from nightherd.model.jobs.changes import CancelJob, CorrectJob, LoseExecution
from nightherd.model.jobs.job import ExecutionStatus, ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.journal.event import SystemEvent, describe, payload_of
from nightherd.model.journal.system import End, ExecutionStarted, Suspension
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals


def go(yard: Yard) -> list[Job]:
    return anyio.run(lambda: rescue(yard.record, yard.terms, on_trouble=yard.trouble.append))


def test_job_of_a_worker_at_work_is_left_alone() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-busyaaaa"))

    assert go(yard) == []
    assert yard.bench.job(job.id) == job
    assert yard.killed == []


@pytest.mark.parametrize(
    "how", ["its process is gone", "silent", "another boot", "never on record"]
)
def test_job_whose_worker_is_gone_waits_for_its_next_execution(how: str) -> None:
    yard = Yard()
    worker = WorkerId("worker-goneaaaa")
    if how == "its process is gone":
        yard.register(worker, pid=7)
        yard.dead.add(7)
    elif how == "silent":
        yard.register(worker, deadline=5.0)
        yard.advance(seconds=10)
    elif how == "another boot":
        yard.register(worker, boot_id="the boot before")
    job = yard.taken(worker)

    (rescued,) = go(yard)

    assert (rescued.id, rescued.status, rescued.restart_count) == (job.id, JobStatus.PENDING, 1)
    assert yard.bench.job(job.id) == rescued
    assert yard.killed == [generate_execution_id(job.id, 1)]
    assert yard.bench.reader.live_workers() == []
    (execution,) = yard.bench.reader.list_executions(job.id)
    assert execution.status is ExecutionStatus.LOST


@pytest.mark.parametrize("days", [-400, 400])
def test_setting_the_wall_clock_steals_no_job(days: int) -> None:
    yard = Yard()
    yard.taken(yard.register("worker-busyaaaa", deadline=1e12))

    yard.bench.clock.advance(timedelta(days=days))

    assert go(yard) == []


def test_job_that_was_lost_too_often_fails_as_interrupted() -> None:
    yard = Yard(max_restarts=0)
    job = yard.taken(WorkerId("worker-goneaaaa"))

    (rescued,) = go(yard)

    assert (rescued.id, rescued.status, rescued.exit_reason) == (
        job.id,
        JobStatus.FAILED,
        ExitReason.ERROR,
    )
    assert rescued.error_code == "interrupted"


def test_what_a_job_had_used_counts_on_when_its_worker_and_its_journal_are_lost() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))
    before = replace(job, cost_microusd=MicroUsd(200_000), input_tokens=70, turns=2, last_seq=9)
    correction = CorrectJob(expected=job, job=before, reason="it had been suspended before")
    anyio.run(yard.bench.store.apply, [correction])

    (rescued,) = go(yard)

    assert (rescued.status, rescued.last_seq) == (JobStatus.PENDING, 0)
    assert (rescued.cost_microusd, rescued.input_tokens, rescued.turns) == (200_000, 70, 2)


def test_job_that_somebody_wants_to_end_is_cancelled_instead_of_run_again() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))
    anyio.run(yard.bench.store.apply, [CancelJob(job_id=job.id, at=yard.bench.clock.now())])

    (rescued,) = go(yard)

    assert (rescued.status, rescued.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)


def test_job_whose_journal_says_how_it_ended_is_settled_so() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))
    execution = generate_execution_id(job.id, 1)
    journal = yard.bench.context.journals.open(job.id, epoch=1, execution=execution)
    journal.append(describe(ExecutionStarted(worker="worker-goneaaaa", continues_after=0)))
    journal.append(describe(End(status="completed", exit_reason="success")))

    (rescued,) = go(yard)

    assert (rescued.status, rescued.last_seq, rescued.restart_count) == (JobStatus.COMPLETED, 2, 0)


def test_job_cancelled_after_its_last_line_was_written_is_cancelled_on_record_too() -> None:
    yard = Yard()
    bench = yard.bench
    job = yard.taken(WorkerId("worker-goneaaaa"))
    execution = generate_execution_id(job.id, 1)
    journal = bench.context.journals.open(job.id, epoch=1, execution=execution)
    journal.append(describe(ExecutionStarted(worker="worker-goneaaaa", continues_after=0)))
    journal.append(describe(End(status="completed", exit_reason="success")))
    journal.close()
    anyio.run(bench.store.apply, [CancelJob(job_id=job.id, at=bench.clock.now())])

    (rescued,) = go(yard)

    assert (rescued.status, rescued.last_seq) == (JobStatus.CANCELLED, 3)
    last = bench.journal(job.id)[-1]
    assert isinstance(last, SystemEvent)
    assert payload_of(last) == End(status="cancelled", exit_reason="cancelled")
    (checkpoint,) = bench.reader.list_checkpoints(job.id)
    assert (checkpoint.trigger, checkpoint.seq) == ("on_cancel", 3)


def test_job_that_waits_for_a_job_below_resumes_when_that_one_ended_before_the_rescue() -> None:
    """As it does when its own worker writes the row: there is nothing left to wait for."""
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))
    below = Suspension(
        reason=SuspendReason.LIMIT, message="a child met it", code="spend_exceeded", is_below=True
    )
    execution = generate_execution_id(job.id, 1)
    journal = yard.bench.context.journals.open(job.id, epoch=1, execution=execution)
    journal.append(describe(ExecutionStarted(worker="worker-goneaaaa", continues_after=0)))
    journal.append(last_line(below))

    (rescued,) = go(yard)

    assert (rescued.status, rescued.suspend_reason) == (JobStatus.PENDING, None)


def test_job_is_not_given_to_others_while_its_processes_cannot_be_killed() -> None:
    yard = Yard()
    stuck, fine = (yard.taken(WorkerId("worker-goneaaaa")) for _ in range(2))
    yard.unkillable = {ExecutionId(generate_execution_id(stuck.id, 1)): "pid 7 cannot be killed"}

    (rescued,) = go(yard)

    assert rescued.id == fine.id
    assert yard.bench.job(stuck.id).status is JobStatus.RUNNING
    assert yard.trouble == ["pid 7 cannot be killed"]


def test_journal_that_cannot_be_read_keeps_no_other_job_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yard = Yard()
    broken, fine = (yard.taken(WorkerId("worker-goneaaaa")) for _ in range(2))
    journals = yard.bench.context.journals
    read = journals.read

    def refusing(job_id, **options):  # type: ignore[no-untyped-def]
        if job_id == broken.id:
            raise JournalError("line 3 cannot be read")
        return read(job_id, **options)

    monkeypatch.setattr(journals, "read", refusing)

    (rescued,) = go(yard)

    assert rescued.id == fine.id
    assert yard.trouble == [f"{broken.id}: line 3 cannot be read"]


def test_of_several_rescuers_one_rescues_each_job() -> None:
    yard = Yard()
    jobs = [yard.taken(WorkerId("worker-goneaaaa")) for _ in range(5)]
    found: list[Job] = []

    async def one() -> None:
        found.extend(await rescue(yard.record, yard.terms))

    async def all_at_once() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(one)

    anyio.run(all_at_once)

    assert sorted(job.id for job in found) == sorted(job.id for job in jobs)
    assert {yard.bench.job(job.id).restart_count for job in jobs} == {1}


def test_rescuer_that_is_late_changes_nothing() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))
    quicker = LoseExecution(
        job_id=job.id,
        epoch=1,
        at=yard.bench.clock.now(),
        reason="gone",
        max_restarts=5,
        last_seq=0,
        total=Totals(),
        own=Totals(),
    )

    async def late() -> list[Job]:
        terms = yard.terms

        async def kill_slowly(executions):  # type: ignore[no-untyped-def]
            await yard.bench.store.apply([quicker])
            return {}

        slow = type(terms)(boot_id=terms.boot_id, max_restarts=5, kill_all_marked=kill_slowly)
        return await rescue(yard.record, slow)

    assert anyio.run(late) == []
    assert yard.bench.job(job.id).restart_count == 1


def test_more_jobs_than_one_batch_are_rescued_in_the_order_they_were_submitted() -> None:
    yard = Yard()
    jobs = [yard.taken(WorkerId("worker-goneaaaa")) for _ in range(BATCH + 3)]

    rescued = go(yard)

    assert [job.id for job in rescued] == [job.id for job in jobs]
    assert len(yard.killed) == len(set(yard.killed)) == BATCH + 3
