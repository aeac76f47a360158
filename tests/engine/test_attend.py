"""Being there while a job is done: jobs of one session run one after the other, whoever runs them."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from engine.bench import Bench, no_one, persistent
from nightherd.engine.attend import attend
from nightherd.engine.execution import Stopper
from nightherd.model.job import ExitReason, Job, JobStatus
from nightherd.testing.runtime import ANSWER, PlayedRuntime


def test_second_job_of_a_session_begins_when_the_first_has_ended() -> None:
    bench = Bench(agent=persistent())
    first, second = bench.submit("one").job, bench.submit("two").job
    told: list[str] = []
    order: list[str] = []

    async def run() -> tuple[Job, Job]:
        begun = anyio.Event()
        waiting = anyio.Event()

        class Slow(PlayedRuntime):
            async def execute(self, request):  # type: ignore[no-untyped-def]
                order.append(request.prompt)
                if request.prompt == "one":
                    begun.set()
                    await waiting.wait()
                for event in ANSWER:
                    yield event

        bench.runtime = Slow()
        ended: dict[str, Job] = {}

        async def one() -> None:
            ended["one"] = await go(first, lambda reason: None)

        async def go(job: Job, on_wait) -> Job:  # type: ignore[no-untyped-def]
            return await attend(
                job.id,
                bench.agent,
                bench.workshop,
                on_event=no_one,
                on_wait=on_wait,
                stopper=Stopper(),
            )

        def heard(reason: str) -> None:
            told.append(reason)
            waiting.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            await begun.wait()
            ended["two"] = await go(second, heard)
        return ended["one"], ended["two"]

    one, two = anyio.run(run)

    assert order == ["one", "two"]
    assert (one.status, two.status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
    assert told == [f"session {first.session_id} is active"]


def test_job_stopped_while_it_waits_is_cancelled_without_having_run() -> None:
    bench = Bench(agent=persistent())
    busy, waits = bench.submit("one").job, bench.submit("two").job

    async def run() -> Job:
        stopper = Stopper()

        bench.runtime = PlayedRuntime((), is_endless=True)
        first = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: attend(
                    busy.id,
                    bench.agent,
                    bench.workshop,
                    on_event=no_one,
                    on_wait=lambda reason: None,
                    stopper=first,
                )
            )
            while bench.job(busy.id).status is not JobStatus.RUNNING:
                await anyio.lowlevel.checkpoint()
            job = await attend(
                waits.id,
                bench.agent,
                bench.workshop,
                on_event=no_one,
                on_wait=lambda reason: stopper.stop(ExitReason.CANCELLED),
                stopper=stopper,
            )
            first.stop(ExitReason.CANCELLED)
        return job

    job = anyio.run(run)

    assert (job.status, job.exit_reason, job.epoch) == (
        JobStatus.CANCELLED,
        ExitReason.CANCELLED,
        0,
    )
    assert bench.journal(job.id) == []
    assert bench.job(busy.id).status is JobStatus.CANCELLED
