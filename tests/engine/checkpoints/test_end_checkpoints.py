"""A job that ends outside an execution has its last checkpoint too: once, and with the change that ends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, no_one
from engine.limits.turns import CENT, FOUR_TURNS, turn
from engine.yard import Yard, until
from nightherd.engine.doctor.stuck import end_stuck_jobs, stuck_jobs
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import FencedError
from nightherd.model.change import Change
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.jobs.changes import (
    CancelJob,
    FailSuspended,
    FailWaiting,
    SettleExecution,
    SuspendExecution,
)
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import Limits
from nightherd.model.usage import Totals
from nightherd.runtimes.claude.capabilities import SDK
from nightherd.testing.runtime import PlayedRuntime
from nightherd.views.jobs.checkpoints import list_bookmarks

TWO_TURNS = Limits(turns=2)
ROOMY = Limits(turns=100)


def bench_with(limits: Limits) -> Bench:
    agent = replace(AGENT, runtime=SDK, limits=limits)
    return Bench(PlayedRuntime(FOUR_TURNS), agent=agent)


def suspended(bench: Bench) -> Job:
    job = bench.run()
    assert job.status is JobStatus.SUSPENDED
    return job


def abandoned_after_three_turns(limits: Limits = ROOMY) -> tuple[Yard, Job]:
    """A job whose worker vanished in the middle."""
    agent = replace(AGENT, runtime=SDK, limits=limits)
    played = PlayedRuntime((*turn(1), *turn(2), *turn(3)), is_endless=True)
    bench = Bench(played, agent=agent)
    job_id = bench.submit().job.id
    lines = 14 if not limits.is_empty else 11

    async def work(stopper: Stopper) -> None:
        with pytest.raises(FencedError):
            await run_job(job_id, agent, bench.context, on_event=no_one, stopper=stopper)

    async def go() -> None:
        stopper = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, stopper)
            await until(lambda: len(bench.journal(job_id)) > lines)
            stopper.abandon()

    anyio.run(go)
    bench.clock.advance(timedelta(seconds=5))
    return Yard(bench=bench), bench.job(job_id)


def apply(bench: Bench, *changes: Change) -> None:
    anyio.run(bench.store.apply, changes)


def cancel(bench: Bench, job: Job) -> Job:
    apply(bench, CancelJob(job_id=job.id, at=bench.clock.now()))
    return bench.job(job.id)


def bookmarks(bench: Bench, job: Job) -> list[Checkpoint]:
    return list_bookmarks(bench.reader, bench.context.journals, job.id)


def ends(bench: Bench, job: Job) -> list[tuple[str, str]]:
    return [(one.trigger, one.status) for one in bookmarks(bench, job) if one.status != "running"]


def test_job_that_never_began_has_nothing_to_checkpoint() -> None:
    bench = bench_with(TWO_TURNS)
    job = cancel(bench, bench.submit().job)

    assert job.status is JobStatus.CANCELLED
    assert bookmarks(bench, job) == []


def test_job_cancelled_while_suspended_has_an_on_cancel_checkpoint() -> None:
    bench = bench_with(TWO_TURNS)
    job = suspended(bench)
    before = bookmarks(bench, job)

    cancel(bench, job)

    *earlier, last = bookmarks(bench, job)
    assert earlier == before
    assert (last.trigger, last.status, last.suspend_reason) == ("on_cancel", "cancelled", None)
    assert (last.number, last.seq) == (before[-1].number + 1, job.last_seq)
    assert (last.turn, last.cost_microusd) == (2, 20 * CENT)
    assert last.header == {"limits": {"turns": 2}}


@pytest.mark.parametrize(
    "change",
    [
        lambda job: FailSuspended(job_id=job.id, at=job.created_at, message="no more"),
        lambda job: FailWaiting(job_id=job.id, at=job.created_at, message="no", code="gone"),
    ],
    ids=["its limit is not raised", "its session cannot be resumed"],
)
def test_suspended_job_that_fails_has_an_on_error_checkpoint(
    change: Callable[[Job], Change],
) -> None:
    bench = bench_with(TWO_TURNS)
    job = suspended(bench)

    apply(bench, change(job))

    assert ends(bench, job) == [("on_suspend", "suspended"), ("on_error", "failed")]


def test_job_cancelled_while_it_waits_for_its_next_worker_keeps_every_earlier_checkpoint() -> None:
    yard, job = abandoned_after_three_turns()
    bench = yard.bench
    anyio.run(rescue, yard.record, yard.terms)
    before = bookmarks(bench, job)
    assert bench.job(job.id).status is JobStatus.PENDING
    assert [one.number for one in before] == [1, 2, 3, 4, 5, 6]

    cancel(bench, job)

    *earlier, last = bookmarks(bench, job)
    assert earlier == before
    assert (last.trigger, last.status) == ("on_cancel", "cancelled")
    assert last.number > before[-1].number
    assert last.turn == 3


@pytest.mark.parametrize("limits", [ROOMY, Limits()], ids=["with limits", "without limits"])
def test_job_that_was_lost_too_often_has_an_on_error_checkpoint(limits: Limits) -> None:
    yard, job = abandoned_after_three_turns(limits)
    yard.max_restarts = 0
    before = bookmarks(yard.bench, job)

    anyio.run(rescue, yard.record, yard.terms)
    anyio.run(rescue, yard.record, yard.terms)

    *earlier, last = bookmarks(yard.bench, job)
    assert earlier == before
    assert (last.trigger, last.status, last.number) == ("on_error", "failed", len(before) + 1)
    assert (last.turn, last.epoch) == (3, 1)
    assert last.header.get("limits", {}) == ({} if limits.is_empty else {"turns": 100})


def test_job_cancelled_after_its_worker_was_lost_has_an_on_cancel_checkpoint() -> None:
    yard, job = abandoned_after_three_turns()
    cancel(yard.bench, job)

    anyio.run(rescue, yard.record, yard.terms)

    assert ends(yard.bench, job) == [("on_cancel", "cancelled")]
    numbers = [one.number for one in bookmarks(yard.bench, job)]
    assert numbers == list(range(1, 8))


def test_job_that_doctor_ends_has_an_on_error_checkpoint() -> None:
    yard, job = abandoned_after_three_turns()

    async def kill(execution: object) -> None:
        """There is nothing to kill."""

    (finding,) = stuck_jobs(yard.record)
    anyio.run(end_stuck_jobs, yard.record, kill, finding)

    assert ends(yard.bench, job) == [("on_error", "failed")]


def test_job_cancelled_while_it_was_being_suspended_has_an_on_cancel_checkpoint() -> None:
    yard, job = abandoned_after_three_turns()
    bench = yard.bench
    cancel(bench, job)
    waits = Suspension(reason=SuspendReason.LIMIT, message="enough", code="turns_exceeded")

    apply(
        bench,
        SuspendExecution(
            job_id=job.id,
            epoch=1,
            at=bench.clock.now(),
            suspension=waits,
            last_seq=len(bench.journal(job.id)),
            total=Totals(turns=3),
            own=Totals(turns=3),
        ),
    )

    assert ends(bench, job) == [("on_cancel", "cancelled")]


def test_child_that_ends_with_its_suspended_parent_has_an_on_cancel_checkpoint() -> None:
    bench = bench_with(TWO_TURNS)
    parent = suspended(bench)
    child = bench.run(parent_job_id=parent.id)
    assert child.status is JobStatus.SUSPENDED

    cancel(bench, parent)

    assert ends(bench, child)[-1] == ("on_cancel", "cancelled")


def test_state_file_of_a_child_that_ends_with_its_failed_parent_is_written() -> None:
    bench = bench_with(TWO_TURNS)
    written: list[tuple[str, str]] = []

    class Folder:
        def write(self, job_id: str, document: Any, /) -> None:
            written.append((job_id, document["status"]))

    bench.context = replace(bench.context, threads=Folder())
    parent = bench.submit().job
    child = bench.run(parent_job_id=parent.id)
    assert written[-1] == (child.id, "suspended")
    bench.runtime = PlayedRuntime([ErrorEvent(message="no", code="broken")])

    assert bench.execute(parent.id).status is JobStatus.FAILED

    assert bench.job(child.id).status is JobStatus.CANCELLED
    assert (child.id, "cancelled") in written


def test_end_checkpoint_counts_worked_time_and_not_the_outage() -> None:
    yard, job = abandoned_after_three_turns()
    yard.max_restarts = 0
    yard.advance(hours=3)

    anyio.run(rescue, yard.record, yard.terms)

    last = bookmarks(yard.bench, job)[-1]
    (execution,) = yard.bench.reader.list_executions(job.id)
    assert last.duration_ms == execution.duration_ms
    assert last.duration_ms < 60_000


def test_job_whose_journal_could_not_be_continued_has_an_on_error_checkpoint() -> None:
    yard, job = abandoned_after_three_turns()
    bench = yard.bench
    assert bench.reader.list_checkpoints(job.id)
    settle_without_a_last_word(bench, job)

    assert ends(bench, job) == [("on_error", "failed")]


def settle_without_a_last_word(bench: Bench, job: Job) -> None:
    outcome = Outcome(exit_reason=ExitReason.ERROR, error="torn", error_code="journal_failed")
    apply(
        bench,
        SettleExecution(
            job_id=job.id,
            epoch=1,
            at=bench.clock.now(),
            outcome=outcome,
            last_seq=len(bench.journal(job.id)),
            total=Totals(turns=3),
            own=Totals(turns=3),
            last_checkpoint=6,
        ),
    )
