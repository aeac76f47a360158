"""Jobs that wait because a child of theirs does: they go on by themselves once it is over, however it ends."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench, no_one
from engine.children.test_spawning import ask, bench_of, children
from engine.limits.resuming import resume
from engine.limits.turns import used
from nightherd.engine.jobs.runner import run_job
from nightherd.model.agents.script import Say, Spend, Step
from nightherd.model.change import Applied
from nightherd.model.jobs.changes import CancelJob, ResumeJob, StartExecution, SuspendExecution
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import NO_LIMITS, Limits
from nightherd.model.usage import Totals
from nightherd.next_step import Action, NextStep

TWO_TURNS: list[Step] = [Say("one"), Spend(used(1)), Say("two"), Spend(used(1))]


def waiting_family(tmp_path: Path, limits: Limits = NO_LIMITS) -> tuple[Bench, Job, Job]:
    """A job that waits because its child has taken its one turn, and the child."""
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], TWO_TURNS, limits)
    agents = dict(bench.context.agents)
    agents["helper"] = replace(agents["helper"], limits=Limits(turns=1))
    bench.context = replace(bench.context, agents=agents)
    job = bench.run()
    (child,) = children(bench, job)
    assert (child.status, child.error_code) == (JobStatus.SUSPENDED, "turns_exceeded")
    return bench, job, child


def resume_helper(bench: Bench, child: Job) -> Job:
    """The child, run to its end with more turns by a worker of its own."""

    async def work() -> Job:
        more = ResumeJob(
            job_id=child.id, at=bench.clock.now(), overrides=JobOptions(limits={"turns": 9})
        )
        await bench.store.apply([more])
        agent = bench.context.agents["helper"]
        return await run_job(child.id, agent, bench.context, on_event=no_one)

    return anyio.run(work)


def test_a_job_that_waits_for_a_child_says_so_and_not_what_the_child_has_met(
    tmp_path: Path,
) -> None:
    _, job, child = waiting_family(tmp_path)

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.LIMIT)
    assert job.error_code == CHILD_WAITS
    assert child.id in (job.error or "")
    assert advice_on(job).step == NextStep(Action.SHOW_JOB, agent=job.agent, job=job.id)


def test_a_job_goes_on_by_itself_once_the_child_it_waits_for_is_done(tmp_path: Path) -> None:
    bench, job, child = waiting_family(tmp_path)

    assert resume_helper(bench, child).status is JobStatus.COMPLETED

    assert bench.job(job.id).status is JobStatus.PENDING, "for any worker to go on with"
    assert bench.execute(job.id).status is JobStatus.COMPLETED
    (answer,) = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert (answer.success, answer.result) == (True, "two")


def test_a_job_whose_child_waits_for_it_now_waits_at_its_own_limit(tmp_path: Path) -> None:
    """The child was given more than the job above it has left."""
    bench, job, child = waiting_family(tmp_path, Limits(turns=1))

    again = resume_helper(bench, child)

    assert (again.status, again.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    assert bench.job(job.id).status is JobStatus.PENDING, "what it waits for is something else now"
    waiting = bench.execute(job.id)
    assert (waiting.status, waiting.error_code) == (JobStatus.SUSPENDED, "turns_exceeded")
    step = advice_on(waiting).step
    assert step is not None
    assert (step.action, step.limit) == (Action.RAISE_JOB_LIMIT, "turns")
    assert resume(bench, waiting, turns=9).status is JobStatus.COMPLETED


def test_a_job_goes_on_by_itself_once_the_child_it_waits_for_is_cancelled(tmp_path: Path) -> None:
    bench, job, child = waiting_family(tmp_path)

    anyio.run(bench.store.apply, [CancelJob(job_id=child.id, at=bench.clock.now())])

    assert bench.job(job.id).status is JobStatus.PENDING
    assert bench.execute(job.id).status is JobStatus.COMPLETED
    (answer,) = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert not answer.success


@pytest.mark.parametrize("code", [CHILD_WAITS, "turns_exceeded"])
def test_a_job_whose_child_was_over_before_it_could_wait_does_not_wait(
    tmp_path: Path, code: str
) -> None:
    bench, job, child = waiting_family(tmp_path)
    resume_helper(bench, child)
    start = StartExecution(job_id=job.id, worker=bench.context.worker, at=bench.clock.now())
    (begun,) = anyio.run(bench.store.apply, [start])
    assert isinstance(begun, Applied)
    assert begun.job is not None
    why = Suspension(reason=SuspendReason.LIMIT, code=code, message="a child waits")
    late = SuspendExecution(
        job_id=job.id,
        epoch=begun.job.epoch,
        at=bench.clock.now(),
        suspension=why,
        last_seq=begun.job.last_seq,
        total=Totals(),
        own=Totals(),
    )

    anyio.run(bench.store.apply, [late])

    waits = JobStatus.PENDING if code == CHILD_WAITS else JobStatus.SUSPENDED
    assert bench.job(job.id).status is waits
