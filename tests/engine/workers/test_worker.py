"""A worker: what it takes and in which order, how it stops, and what it survives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, persistent
from engine.yard import PATIENCE_S, Yard, several, until
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.workers.worker import WorkerLoop
from nightherd.errors import StateError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer, Change, EndWorker
from nightherd.model.ids import JobId, WorkerId
from nightherd.model.jobs.changes import ClaimJob, SettleExecution
from nightherd.model.jobs.job import ExitReason, JobStatus
from nightherd.model.worker import WorkerStatus
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.runtime import ANSWER, PlayedRuntime


def work(shift: WorkerLoop) -> None:
    async def go() -> None:
        with anyio.fail_after(PATIENCE_S):
            await shift.work()

    anyio.run(go)


def submit_for(yard: Yard, agent: Agent, **more: object) -> JobId:
    request = JobDraft(agent=agent, prompt="go", **more)  # type: ignore[arg-type]
    return anyio.run(record_job, request, yard.bench.context).job.id


class Watching(PlayedRuntime):
    """Knows how many run at once, altogether and by agent; each waits until everybody had a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self.most: dict[str, int] = {}
        self.most_together = 0

    async def execute(self, request):  # type: ignore[no-untyped-def]
        name = request.agent.name
        self.running.append(name)
        self.most[name] = max(self.most.get(name, 0), self.running.count(name))
        self.most_together = max(self.most_together, len(self.running))
        await anyio.sleep(0.01)
        self.running.remove(name)
        for event in ANSWER:
            yield event


def test_jobs_run_most_important_first_and_then_in_the_order_they_came() -> None:
    yard = Yard()
    low = [submit_for(yard, AGENT) for _ in range(2)]
    high = [submit_for(yard, AGENT, priority=5) for _ in range(2)]

    work(yard.shift())

    assert yard.started == [*high, *low]
    assert {job.status for job in yard.ended} == {JobStatus.COMPLETED}


def test_job_that_has_waited_long_enough_goes_before_more_important_ones() -> None:
    yard = Yard()
    patient = submit_for(yard, AGENT)
    yard.advance(hours=1)
    urgent = submit_for(yard, AGENT, priority=9)

    work(yard.shift())

    assert yard.started == [patient, urgent]


def test_no_more_jobs_run_than_agent_and_fleet_allow() -> None:
    runtime = Watching()
    yard = Yard(bench=Bench(runtime=runtime))
    one, two = several(2, "one"), several(5, "two")
    for _ in range(8):
        submit_for(yard, one)
        submit_for(yard, two)

    work(yard.shift(one, two, fleet_limit=4))

    assert len(yard.ended) == 16
    assert runtime.most["one"] <= 2
    assert runtime.most["two"] <= 4
    assert runtime.most_together == 4


def test_jobs_that_others_run_count_too() -> None:
    yard = Yard()
    other = yard.register("worker-otheraaa")
    taken = yard.taken(other)
    waiting = submit_for(yard, AGENT)

    async def go() -> None:
        shift = yard.shift(leaves_when_idle=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shift.work)
            await anyio.sleep(0.6)  # two looks at the queue
            shift.drain()

    anyio.run(go)

    assert yard.started == []
    assert yard.bench.job(waiting).status is JobStatus.PENDING
    assert yard.bench.job(taken.id).status is JobStatus.RUNNING


def test_several_workers_share_the_jobs_and_run_each_once() -> None:
    yard = Yard()
    agent = several(6)
    ids = [submit_for(yard, agent) for _ in range(40)]

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("worker-oneaaaaa", "worker-twoaaaaa", "worker-threeaaa"):
                tasks.start_soon(yard.shift(agent, context=yard.context(name)).work)

    for name in ("worker-oneaaaaa", "worker-twoaaaaa", "worker-threeaaa"):
        yard.register(name)
    anyio.run(go)

    assert sorted(yard.started) == sorted(ids)
    assert {yard.bench.job(job_id).epoch for job_id in ids} == {1}


def test_jobs_of_one_session_run_one_after_the_other() -> None:
    runtime = Watching()
    yard = Yard(bench=Bench(runtime=runtime, agent=replace(persistent(), max_concurrent=4)))
    ids = [submit_for(yard, yard.bench.agent) for _ in range(3)]

    work(yard.shift())

    assert yard.started == ids
    assert runtime.most_together == 1


def test_lost_job_is_rescued_before_an_idle_worker_leaves() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-goneaaaa"))

    work(yard.shift())

    assert [one.id for one in yard.rescued] == [job.id]
    assert yard.bench.job(job.id).status is JobStatus.COMPLETED
    assert yard.bench.job(job.id).epoch == 2


def test_drained_worker_finishes_what_it_runs_and_takes_nothing_new() -> None:
    yard = Yard()
    first, second = submit_for(yard, AGENT), submit_for(yard, AGENT)

    async def go() -> None:
        shift = yard.shift(leaves_when_idle=False)

        class Draining(PlayedRuntime):
            async def execute(self, request):  # type: ignore[no-untyped-def]
                shift.drain()
                for event in ANSWER:
                    yield event

        yard.bench.runtime = Draining()
        with anyio.fail_after(PATIENCE_S):
            await shift.work()
        assert shift.is_draining

    anyio.run(go)

    assert yard.bench.job(first).status is JobStatus.COMPLETED
    assert yard.bench.job(second).status is JobStatus.PENDING


def test_cancelled_worker_ends_what_it_runs() -> None:
    yard = Yard(bench=Bench(runtime=PlayedRuntime((), is_endless=True)))
    job_id = submit_for(yard, AGENT)

    async def go() -> None:
        shift = yard.shift(leaves_when_idle=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shift.work)
            await until(lambda: yard.bench.runtime.requests)
            shift.cancel()

    anyio.run(go)

    job = yard.bench.job(job_id)
    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    assert yard.bench.runtime.was_closed


def test_worker_whose_lease_is_lost_stops_its_jobs_and_settles_nothing() -> None:
    yard = Yard(bench=Bench(runtime=PlayedRuntime((), is_endless=True)))
    job_id = submit_for(yard, AGENT)

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(yard.shift(leaves_when_idle=False).work)
            await until(lambda: yard.bench.runtime.requests)
            yard.bench.lease.lose()

    yard.register(yard.bench.context.worker)
    anyio.run(go)

    assert yard.bench.job(job_id).status is JobStatus.RUNNING
    assert yard.bench.runtime.was_closed
    assert any("lease is lost" in text for text in yard.trouble)


def test_worker_that_was_given_up_gets_no_job() -> None:
    yard = Yard()
    worker = yard.register("worker-goneaaaa")
    lost = EndWorker(worker_id=worker, status=WorkerStatus.LOST, at=yard.bench.clock.now())
    submit_for(yard, AGENT)
    claim = ClaimJob(worker=worker, at=yard.bench.clock.now(), agents={AGENT.name: 1}, repos={})

    changes: list[Change] = [lost, claim]
    _, answer = anyio.run(yard.bench.store.apply, changes)

    assert "is lost" in getattr(answer, "message", "")
    assert yard.bench.reader.has_waiting_job([AGENT.name])


class Failing(MemoryStore):
    """Raises once for the first change of a kind."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind: type | None = kind

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        if self.kind is not None and any(isinstance(change, self.kind) for change in changes):
            self.kind = None
            raise StateError("no space left on device")
        return await super().apply(changes)


@pytest.mark.parametrize("kind", [ClaimJob, SettleExecution])
def test_full_disk_costs_no_job(kind: type) -> None:
    yard = Yard(bench=Bench(store=Failing(kind)))
    yard.register(yard.bench.context.worker)
    job_id = submit_for(yard, AGENT)

    async def go() -> None:
        shift = yard.shift(leaves_when_idle=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shift.work)
            await until(lambda: yard.bench.job(job_id).status is JobStatus.COMPLETED)
            shift.drain()

    anyio.run(go)

    assert any("no space left" in text for text in yard.trouble)


def test_job_that_cannot_be_run_at_all_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yard = Yard(max_restarts=0)
    yard.register(yard.bench.context.worker)
    bad, good = submit_for(yard, AGENT), submit_for(yard, AGENT)
    journals = yard.bench.context.journals
    open_journal, failed = journals.open, list[JobId]()

    def failing(job_id: JobId, **options):  # type: ignore[no-untyped-def]
        if job_id == bad and not failed:
            failed.append(job_id)
            raise RuntimeError("out of the blue")
        return open_journal(job_id, **options)

    monkeypatch.setattr(journals, "open", failing)

    async def go() -> None:
        shift = yard.shift(leaves_when_idle=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shift.work)
            await until(lambda: all(yard.bench.job(one).is_terminal for one in (bad, good)))
            shift.drain()

    anyio.run(go)

    assert yard.bench.job(bad).error_code == "interrupted"
    assert yard.bench.job(good).status is JobStatus.COMPLETED
    assert f"{bad}: RuntimeError: out of the blue" in yard.trouble


def test_job_that_may_not_run_yet_is_not_taken() -> None:
    yard = Yard()
    job_id = submit_for(yard, AGENT)
    at = yard.bench.clock.now()
    later = replace(yard.bench.job(job_id), not_before=at + timedelta(hours=1))
    yard.bench.store._rows.write([later])
    claim = ClaimJob(worker=WorkerId("worker-aaaaaaaa"), at=at, agents={AGENT.name: 1}, repos={})

    (early,) = anyio.run(yard.bench.store.apply, [claim])
    (due,) = anyio.run(yard.bench.store.apply, [replace(claim, at=at + timedelta(hours=2))])

    assert getattr(early, "job", None) is None
    assert due.job is not None
    assert due.job.id == job_id
