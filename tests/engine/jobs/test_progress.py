"""What a running job has used is on its row while it runs, and costs little to keep there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import cast

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.turns import turn
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.recorder import LONGEST_S, save_progress
from nightherd.engine.jobs.runner import run_job
from nightherd.errors import StateError
from nightherd.model.change import Answer, Change
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.model.limits.limits import DayLimits, Limits
from nightherd.model.limits.spending import Reservation
from nightherd.model.units import MicroUsd
from nightherd.ports import RuntimeRequest, StateWriter
from nightherd.testing.runtime import PlayedRuntime

TURNS = (*turn(1, cents=1), *turn(2, cents=1))


class FullDisk:
    """A state whose first change cannot be written."""

    def __init__(self, state: StateWriter) -> None:
        self._state = state
        self._is_full = True

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        was_full, self._is_full = self._is_full, False
        if was_full:
            raise StateError("no space left on device")
        return await self._state.apply(changes)


def at_work(
    bench: Bench,
    *steps: timedelta,
    look: Callable[[], None] = lambda: None,
    state: StateWriter | None = None,
) -> list[Job]:
    """The job's row after each step of the clock, while its runtime goes on for ever."""
    job_id = bench.submit().job.id
    rows: list[Job] = []

    async def save(stopper: Stopper, is_asked: anyio.Event) -> None:
        await is_asked.wait()
        for step in steps:
            bench.clock.advance(step)
            shop = bench.context
            await save_progress([stopper], replace(shop, state=state or shop.state))
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
            await run_job(job_id, bench.agent, bench.context, on_event=heard, stopper=stopper)

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


def test_what_could_not_be_written_is_written_later_though_nothing_is_new() -> None:
    bench = Bench(PlayedRuntime(TURNS, is_endless=True))
    full = cast("StateWriter", FullDisk(bench.context.state))

    first, second = at_work(bench, timedelta(seconds=5), timedelta(seconds=LONGEST_S), state=full)

    assert (first.turns, second.turns) == (0, 2)
