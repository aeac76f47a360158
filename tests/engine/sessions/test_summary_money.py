"""A summary that a model writes is paid for as any answer is: within the limits, and counted when it is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from engine.bench import Bench
from engine.sessions.test_session_context import LONG, limited, summaries
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, describe
from nightherd.model.journal.system import Complete
from nightherd.model.limits.limits import Limits
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.testing.runtime import PlayedRuntime

USED = Usage(cost_microusd=MicroUsd(7))
TAKEN = Usage(cost_microusd=MicroUsd(5))
LIMIT = MicroUsd(1_000)


class Careful(PlayedRuntime):
    """Asks before it spends, says what it asks for, and answers; or fails in the middle of it."""

    def __init__(self) -> None:
        super().__init__(())
        self.worst = 0
        self.is_failing = False
        self.asked: list[str] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        if await request.may_spend(self.worst, 0) is not None:
            yield ErrorEvent(message="no more", code="limit")
            return
        self.asked.append(request.prompt)
        yield AssistantEvent(partial=True, usage=TAKEN)
        if self.is_failing and request.prompt.startswith("Summarise"):
            yield ErrorEvent(message="broke", extra={"usage": {"cost_microusd": 3}})
            return
        turn = request.job_turns + 1
        yield AssistantEvent(content=LONG, usage=USED, turn=turn, index=0, end=True)
        yield describe(Complete(usage=USED))


def long_session() -> tuple[Bench, Careful]:
    """A session that the next job will have summarised."""
    runtime = Careful()
    agent = replace(limited(NATIVE), limits=Limits(spend=LIMIT))
    bench = Bench(agent=agent, runtime=runtime)
    assert bench.run("first question").cost_microusd == USED.cost_microusd
    runtime.asked.clear()
    return bench, runtime


def costs_when_cut(bench: Bench, job: Job) -> list[int]:
    """What the job would be said to have cost, had its worker died after each of its lines."""
    tally, found = Tally(), []
    for event in bench.journal(job.id):
        tally = tally.add(event)
        found.append(int(tally.cut_off.usage.cost_microusd))
    return found


def test_a_summary_that_may_cost_too_much_is_not_asked_for() -> None:
    bench, runtime = long_session()
    runtime.worst = LIMIT + 1

    job = bench.run("second question")

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert runtime.asked == []
    assert summaries(bench, job.id) == [], "nor is a worse one put in its place"


def test_a_summary_that_is_lost_with_its_worker_counts() -> None:
    bench, runtime = long_session()

    job = bench.run("second question")

    assert len(runtime.asked) == 2
    assert len(summaries(bench, job.id)) == 1
    assert job.cost_microusd == 2 * USED.cost_microusd
    costs = costs_when_cut(bench, job)
    assert sorted({*costs}) == [0, 5, 7, 12, 14], "asked, written, asked again, answered"


def test_a_summary_that_fails_counts_what_it_had_used() -> None:
    bench, runtime = long_session()
    runtime.is_failing = True

    job = bench.run("second question")

    assert job.status is JobStatus.COMPLETED
    assert job.cost_microusd == 3 + USED.cost_microusd
    assert len(summaries(bench, job.id)) == 1
