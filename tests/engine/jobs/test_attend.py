"""Being there while a job is done: jobs of one session run one after the other, whoever runs them."""

from __future__ import annotations

from functools import partial

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from engine.bench import Bench, no_one, persistent
from engine.yard import until
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.wait import wait_for_job
from nightherd.engine.workers.lease import Lease
from nightherd.errors import JournalError
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import LoseExecution, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event
from nightherd.model.usage import Totals
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
            return await wait_for_job(
                job.id,
                bench.agent,
                bench.context,
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
    assert told == [f"{first.id} goes first in session {first.session_id} and is running"]


def test_job_stopped_while_it_waits_is_cancelled_without_having_run() -> None:
    bench = Bench(agent=persistent())
    busy, waits = bench.submit("one").job, bench.submit("two").job

    async def run() -> Job:
        stopper = Stopper()

        bench.runtime = PlayedRuntime((), is_endless=True)
        first = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: wait_for_job(
                    busy.id,
                    bench.agent,
                    bench.context,
                    on_event=no_one,
                    on_wait=lambda reason: None,
                    stopper=first,
                )
            )
            while bench.job(busy.id).status is not JobStatus.RUNNING:
                await anyio.lowlevel.checkpoint()
            job = await wait_for_job(
                waits.id,
                bench.agent,
                bench.context,
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


def test_job_that_another_worker_took_is_followed_to_its_end() -> None:
    bench = Bench()
    job = bench.submit("one").job
    told: list[str] = []
    shown: list[int] = []

    async def run() -> Job:
        release = anyio.Event()

        class Slow(PlayedRuntime):
            async def execute(self, request):  # type: ignore[no-untyped-def]
                yield AssistantEvent(content="begun", turn=1, index=0, end=True)
                await release.wait()
                yield ErrorEvent(message="no luck", code="bad_luck")

        bench.runtime = Slow()
        other = replace(bench.context, worker=WorkerId("worker-otheraaa"))

        def see(event: Event) -> None:
            shown.append(event.seq)
            if isinstance(event, AssistantEvent):
                release.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                partial(run_job, job.id, bench.agent, other, on_event=no_one, stopper=Stopper())
            )
            while bench.job(job.id).status is not JobStatus.RUNNING:
                await anyio.lowlevel.checkpoint()
            found = await wait_for_job(
                job.id,
                bench.agent,
                bench.context,
                on_event=see,
                on_wait=told.append,
                stopper=Stopper(),
            )
        assert found == bench.job(job.id)
        return found

    ended = anyio.run(run)

    assert (ended.status, ended.error_code, ended.worker) == (
        JobStatus.FAILED,
        "bad_luck",
        "worker-otheraaa",
    )
    assert shown == list(range(1, ended.last_seq + 1))
    assert told == []


def test_job_whose_worker_died_meanwhile_is_rescued_and_done_here() -> None:
    bench = Bench()
    job = bench.submit("one").job
    gone = StartExecution(job_id=job.id, worker=WorkerId("worker-goneaaaa"), at=bench.clock.now())
    anyio.run(bench.store.apply, [gone])
    lost = LoseExecution(
        job_id=job.id,
        epoch=1,
        at=bench.clock.now(),
        reason="gone",
        max_restarts=5,
        last_seq=0,
        total=Totals(),
        own=Totals(),
    )

    async def run() -> Job:
        return await wait_for_job(
            job.id,
            bench.agent,
            bench.context,
            on_event=no_one,
            on_wait=lambda reason: None,
            stopper=Stopper(),
            rescue=lambda: bench.store.apply([lost]),
        )

    ended = anyio.run(run)

    assert (ended.status, ended.epoch, ended.restart_count) == (JobStatus.COMPLETED, 2, 1)


def test_job_that_was_taken_over_is_followed_and_not_run_again() -> None:
    bench = Bench()
    job = bench.submit("one").job
    bench.runtime = PlayedRuntime((), is_endless=True)
    shown: list[Event] = []

    async def run() -> Job:
        ended: list[Job] = []

        async def here() -> None:
            ended.append(
                await wait_for_job(
                    job.id,
                    bench.agent,
                    bench.context,
                    on_event=shown.append,
                    on_wait=lambda reason: None,
                    stopper=Stopper(),
                )
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here)
            while not bench.runtime.requests:
                await anyio.lowlevel.checkpoint()
            bench.lease.lose()
            await until(lambda: bench.runtime.was_closed)
            lost = LoseExecution(
                job_id=job.id,
                epoch=1,
                at=bench.clock.now(),
                reason="gone",
                max_restarts=5,
                last_seq=0,
                total=Totals(),
                own=Totals(),
            )
            await bench.store.apply([lost])
            bench.runtime = PlayedRuntime()
            other = replace(
                bench.context,
                worker=WorkerId("worker-otheraaa"),
                lease=Lease(deadline=1e9),
            )
            await run_job(job.id, bench.agent, other, on_event=no_one)
        return ended[0]

    ended = anyio.run(run)

    assert (ended.status, ended.epoch, ended.worker) == (
        JobStatus.COMPLETED,
        2,
        "worker-otheraaa",
    )
    assert [event.seq for event in shown] == list(range(1, ended.last_seq + 1))


def test_a_job_that_goes_first_and_cannot_run_does_not_end_those_who_wait_for_it() -> None:
    bench = Bench(agent=persistent())
    first, second = bench.submit("one").job, bench.submit("two").job
    journals, told = bench.context.journals, list[str]()

    class Broken:
        """Journals of which that of the first job cannot be opened."""

        def open(self, job_id, **given):  # type: ignore[no-untyped-def]
            if job_id == first.id:
                raise JournalError("cannot open the journal: Is a directory")
            return journals.open(job_id, **given)

        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(journals, name)

    async def run() -> Job:
        return await wait_for_job(
            second.id,
            bench.agent,
            replace(bench.context, journals=Broken(), agents={bench.agent.name: bench.agent}),
            on_event=no_one,
            on_wait=told.append,
            stopper=Stopper(),
        )

    ended = anyio.run(run)

    assert ended.status is JobStatus.COMPLETED
    assert bench.job(first.id).status is JobStatus.FAILED
    assert f"{first.id}: cannot open the journal: Is a directory" in told
