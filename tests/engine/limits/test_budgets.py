"""What jobs share: a day's limit of an agent, a schedule or the fleet, and what all jobs may use ever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.turns import CENT, END, FOUR_TURNS, used
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Say, Spend, compile_script
from nightherd.model.change import Applied, Change, Refused, Why
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.limits.limits import (
    NO_LIMITS,
    DayLimits,
    LimitName,
    Limits,
    OnLimit,
    Scope,
    Used,
)
from nightherd.model.limits.spending import Budget, CountUsage
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.runtimes.claude.capabilities import SDK
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.runtime import PlayedRuntime
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

DAY = "2026-03-01"


def agent_of(tmp_path: Path, limits: Limits = NO_LIMITS, *, turns: int = 3) -> Agent:
    steps = [step for n in range(turns) for step in (Say(f"turn {n + 1}"), Spend(used(10)))]
    return replace(
        AGENT, script=compile_script(steps), limits=limits, working_directory=str(tmp_path)
    )


def bench_of(agent: Agent, *, budget: Limits = NO_LIMITS) -> Bench:
    bench = Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    bench.context = replace(bench.context, budget=budget)
    return bench


def cents(amount: int) -> MicroUsd:
    return MicroUsd(amount * CENT)


def test_a_day_that_ends_while_it_is_asked_about_is_not_waited_for_again(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path, Limits(per_day=DayLimits(turns=1))))
    midnight = (bench.clock.now() + timedelta(days=1)).replace(hour=0, minute=0, second=0)

    class SlowStore(MemoryStore):
        """Answers on the next day."""

        async def apply(self, changes: Sequence[Change]) -> Sequence[Applied | Refused]:
            answers = await super().apply(changes)
            if any(isinstance(one, Refused) for one in answers):
                bench.clock.advance(midnight - bench.clock.now())
            return answers

    store = SlowStore()
    bench.store, bench.reader = store, store.reader()
    bench.context = replace(bench.context, state=store, reader=bench.reader)

    job = bench.run()

    assert job.not_before is not None
    assert job.not_before <= midnight + timedelta(seconds=1), "the day it met the limit of is over"


def test_an_agents_day_is_shared_by_its_jobs_and_begins_anew_by_itself(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path, Limits(per_day=DayLimits(spend=cents(45)))))
    first = bench.run()

    second = bench.run()

    assert (first.status, first.cost_microusd) == (JobStatus.COMPLETED, 30 * CENT)
    assert (second.status, second.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    assert (second.error_code, second.cost_microusd) == ("spend_exceeded", 10 * CENT)
    midnight = datetime(2026, 1, 3, tzinfo=UTC)
    assert second.not_before == midnight, "the fake clock shows the second of January"

    bench.clock.advance(timedelta(days=1))
    wake = ResumeJob(job_id=second.id, at=bench.clock.now(), only_due=True)
    anyio.run(bench.store.apply, [wake])
    done = bench.execute(second.id)

    assert (done.status, done.cost_microusd) == (JobStatus.COMPLETED, 30 * CENT)
    assert bench.reader.spent("2026-01-02", None, None).spend == 40 * CENT
    assert bench.reader.spent("2026-01-03", None, None).spend == 20 * CENT


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        (Limits(spend=cents(45)), "spend_exceeded"),
        (Limits(turns=4), "turns_exceeded"),
        (Limits(tokens=80), "tokens_exceeded"),
        (Limits(per_day=DayLimits(turns=4)), "turns_exceeded"),
        (Limits(per_day=DayLimits(tokens=99)), "tokens_exceeded"),
    ],
)
def test_what_the_fleet_may_use_is_shared_by_all_its_jobs(
    tmp_path: Path, budget: Limits, code: str
) -> None:
    bench = bench_of(agent_of(tmp_path), budget=budget)
    first = bench.run()

    second = bench.run()

    assert first.status is JobStatus.COMPLETED
    assert (second.status, second.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    assert (second.error_code, second.turns) == (code, 1)
    assert (second.not_before is not None) is (
        not budget.is_empty and budget.per_day != DayLimits()
    )


@pytest.mark.parametrize(
    ("own", "budget"),
    [
        (NO_LIMITS, Limits(turns=4, outcomes={LimitName.TURNS: OnLimit.FAIL})),
        (NO_LIMITS, Limits(per_day=DayLimits(turns=4), outcomes={LimitName.TURNS: OnLimit.FAIL})),
        (Limits(per_day=DayLimits(turns=4), outcomes={LimitName.TURNS: OnLimit.FAIL}), NO_LIMITS),
    ],
)
def test_a_job_may_fail_at_what_it_shares(tmp_path: Path, own: Limits, budget: Limits) -> None:
    bench = bench_of(agent_of(tmp_path, own), budget=budget)
    bench.run()

    second = bench.run()

    assert (second.status, second.exit_reason) == (JobStatus.FAILED, ExitReason.MAX_TURNS)
    assert (second.error_code, second.turns) == ("turns_exceeded", 1)


def test_a_schedules_day_is_met_as_the_schedule_says(tmp_path: Path) -> None:
    hourly = Schedule(
        name="hourly",
        rule=Interval(every=timedelta(hours=1)),
        limits=Limits(per_day=DayLimits(turns=1), outcomes={LimitName.TURNS: OnLimit.FAIL}),
    )
    bench = bench_of(replace(agent_of(tmp_path), schedules={"hourly": hourly}))

    assert bench.run(schedule="hourly").status is JobStatus.FAILED


def test_a_schedules_day_is_its_own(tmp_path: Path) -> None:
    hourly = Schedule(
        name="hourly",
        rule=Interval(every=timedelta(hours=1)),
        limits=Limits(per_day=DayLimits(turns=3)),
    )
    bench = bench_of(replace(agent_of(tmp_path), schedules={"hourly": hourly}))

    by_hand = bench.run()
    first = bench.run(schedule="hourly")
    second = bench.run(schedule="hourly")

    assert (by_hand.status, first.status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
    assert (second.status, second.turns) == (JobStatus.SUSPENDED, 0)
    assert "the schedule's limit of 3 a day" in (second.error or "")


def test_a_watched_job_is_stopped_before_the_tools_of_the_turn_that_used_the_day_up() -> None:
    agent = replace(AGENT, runtime=SDK, limits=Limits(per_day=DayLimits(spend=cents(20))))

    job = Bench(PlayedRuntime(FOUR_TURNS), agent=agent).run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    assert (job.turns, job.cost_microusd) == (1, 20 * CENT)


def test_a_watched_job_that_has_answered_is_let_end_although_the_day_is_used_up() -> None:
    agent = replace(AGENT, runtime=SDK, limits=Limits(per_day=DayLimits(spend=cents(5))))

    job = Bench(PlayedRuntime(END), agent=agent).run()

    assert (job.status, job.cost_microusd) == (JobStatus.COMPLETED, 10 * CENT)


def test_counting_on_the_way_counts_nothing_twice(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path), budget=Limits(spend=cents(1_000)))

    job = bench.run()

    session = bench.reader.find_session(job.session_id or "")  # type: ignore[arg-type]  # it has one
    assert session is not None
    assert (session.turn_count, session.cost_microusd) == (3, 30 * CENT)
    assert session.message_count == job.messages
    assert bench.reader.spent(None, None, None) == Used(spend=30 * CENT, turns=3, tokens=60)


def count(
    number: int, cost: int, *, asked: int = 0, maximum: int = 100, turns: int = 1
) -> CountUsage:
    budget = Budget(scope=Scope.FLEET, name=LimitName.SPEND, maximum=maximum, day=DAY)
    return CountUsage(
        job_id=job_id(number),
        epoch=1,
        at=BEGINNING,
        total=Totals(turns=turns, messages=2, usage=Usage(cost_microusd=MicroUsd(cost))),
        last_seq=3,
        asked=Used(spend=asked),
        budgets=(budget,),
    )


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryStore | SqliteStore:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path, FakeClock())


async def spend_together(store: MemoryStore | SqliteStore) -> list[Applied | Refused]:
    """Two jobs of one budget of 100, one after another and at once."""
    changes: list[Change] = [
        submit(1),
        submit(2, agent="other"),
        start(1),
        start(2),
        count(1, 0, asked=60, turns=0),
        count(2, 0, asked=50, turns=0),  # the first has set 60 aside
        count(2, 0, asked=40, turns=0),
        count(1, 30, asked=30),  # it used half of what it had set aside: 30 + 40 + 30
        count(1, 30, asked=31),
        settle(2, totals=Totals(turns=1, usage=Usage(cost_microusd=MicroUsd(5)))),
        count(1, 30, asked=65),  # the second is over: what it had not used is free again
        count(1, 95, asked=1),
    ]
    try:
        return list(await store.apply(changes))
    finally:
        await store.close()


def test_what_others_have_set_aside_is_not_there(store: MemoryStore | SqliteStore) -> None:
    answers = anyio.run(spend_together, store)

    refused = [place for place, one in enumerate(answers) if isinstance(one, Refused)]
    assert refused == [5, 8, 11]
    for place in refused:
        answer = answers[place]
        assert isinstance(answer, Refused)
        assert answer.why is Why.OVER_BUDGET
    last = answers[11]
    assert isinstance(last, Refused)
    assert last.hit is not None
    assert (last.hit.current, last.hit.maximum) == (100, 100)


def finished(job: Job) -> tuple[JobStatus, int]:
    return job.status, job.cost_microusd


def test_a_job_that_needs_exactly_what_is_left_gets_it(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path), budget=Limits(spend=cents(60)))

    first, second = bench.run(), bench.run()

    assert finished(first) == finished(second) == (JobStatus.COMPLETED, 30 * CENT)
