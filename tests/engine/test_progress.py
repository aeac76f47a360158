"""What a running job has used is on its row while it runs, and costs little to keep there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import timedelta

import anyio

from engine.bench import AGENT, Bench
from limits.turns import turn
from nightherd.engine.execution import execute
from nightherd.engine.progress import LONGEST_S, save_progress
from nightherd.engine.stopper import Stopper
from nightherd.model.event import Event, ToolResultEvent
from nightherd.model.job import ExitReason, Job, JobStatus
from nightherd.model.limits import DayLimits, Limits
from nightherd.model.money import MicroUsd
from nightherd.model.spending import Reservation
from nightherd.ports import RuntimeRequest
from nightherd.testing.runtime import PlayedRuntime

TURNS = (*turn(1, cents=1), *turn(2, cents=1))


def at_work(bench: Bench, *steps: timedelta, look: Callable[[], None] = lambda: None) -> list[Job]:
    """The job's row after each step of the clock, while its runtime goes on for ever."""
    job_id = bench.submit().job.id
    rows: list[Job] = []

    async def save(stopper: Stopper, is_asked: anyio.Event) -> None:
        await is_asked.wait()
        for step in steps:
            bench.clock.advance(step)
            await save_progress([stopper], bench.workshop)
            rows.append(bench.job(job_id))
            look()
        stopper.stop(ExitReason.CANCELLED)

    async def work() -> None:
        stopper, is_asked = Stopper(), anyio.Event()

        def heard(event: Event) -> None:
            if isinstance(event, ToolResultEvent) and event.turn == 2:
                is_asked.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(save, stopper, is_asked)
            await execute(job_id, bench.agent, bench.workshop, on_event=heard, stopper=stopper)

    anyio.run(work)
    return rows


def test_a_running_job_without_limits_shows_what_it_has_used() -> None:
    bench = Bench(PlayedRuntime(TURNS, is_endless=True))

    (row,) = at_work(bench, timedelta(seconds=5))

    assert (row.status, row.turns, row.cost_microusd) == (JobStatus.RUNNING, 2, 20_000)
    assert bench.reader.spent(None, None, None).spend == 20_000


def test_a_short_job_is_not_written_on_the_way() -> None:
    bench = Bench(PlayedRuntime(TURNS, is_endless=True))

    (row,) = at_work(bench, timedelta(milliseconds=100))

    assert (row.turns, row.cost_microusd) == (0, 0)


def test_a_job_that_uses_nothing_more_is_not_written_again() -> None:
    bench = Bench(PlayedRuntime(TURNS, is_endless=True))
    stopper_rows = at_work(bench, timedelta(seconds=5), timedelta(seconds=2 * LONGEST_S))

    assert stopper_rows[0] == stopper_rows[1]


class AskingRuntime(PlayedRuntime):
    """Asks before its third turn, and waits for ever for the answer of the model."""

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """Play two turns and ask for the next."""
        async for event in super().execute(request):
            if isinstance(event, ToolResultEvent) and event.turn == 2:
                assert await request.may_spend(50_000, 10) is None
            yield event


def test_what_is_set_aside_for_a_turn_is_not_given_back_before_its_answer() -> None:
    limits = Limits(per_day=DayLimits(spend=MicroUsd(1_000_000)))
    runtime = AskingRuntime(TURNS, is_endless=True)
    bench = Bench(runtime, replace(AGENT, limits=limits))
    set_aside: list[int] = []

    def look() -> None:
        (held,) = bench.store.all(Reservation)
        set_aside.append(held.cost_microusd)

    at_work(bench, timedelta(seconds=5), look=look)

    assert set_aside == [50_000]
