"""Days of families: what a job below uses counts for the day of every agent and schedule above it, once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.children.test_spawning import agent_of, ask, children
from engine.limits.turns import CENT, used
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.workers.clock_watch import wake_jobs
from nightherd.model.agents.script import Say, Spend, Step
from nightherd.model.change import Applied, Change, Refused
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import CHILD_WAITS, JobStatus, SuspendReason
from nightherd.model.limits.limits import NO_LIMITS, DayLimits, LimitName, Limits, Scope, Used
from nightherd.model.limits.spending import Budget, CountUsage, day_of
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING, job_id, start, submit

LONG: list[Step] = [step for n in range(3) for step in (Say(f"part {n}"), Spend(used(10)))]
DAILY = Limits(per_day=DayLimits(spend=MicroUsd(25 * CENT)))
NIGHTLY = Schedule(name="nightly", rule=Interval(every=timedelta(hours=1)))


def family(
    tmp_path: Path,
    limits: Limits = NO_LIMITS,
    *,
    helper: str = "helper",
    nightly: Limits = DAILY,
) -> Bench:
    """`boss`, with a schedule, has `helper` do all the work: thirty cents, and ten of its own."""
    boss = agent_of(tmp_path, "boss", [*ask(helper), Say("done")], limits)
    boss = replace(boss, schedules={"nightly": replace(NIGHTLY, limits=nightly)})
    bench = Bench(ScriptedRuntime(), agent=boss)  # type: ignore[arg-type]  # any runtime does
    agents = {"boss": boss, "helper": agent_of(tmp_path, "helper", LONG, NO_LIMITS)}
    bench.context = replace(bench.context, agents=agents, run_job=run_job)
    return bench


@pytest.mark.parametrize("schedule", [None, "nightly"])
def test_a_child_keeps_within_the_day_of_those_above_and_all_wait_for_the_next(
    tmp_path: Path, schedule: str | None
) -> None:
    bench = family(tmp_path, DAILY if schedule is None else NO_LIMITS)

    job = bench.run(schedule=schedule)

    (child,) = children(bench, job)
    assert child.cost_microusd + job.cost_microusd <= 25 * CENT
    assert (child.status, child.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    whose = "agent boss" if schedule is None else "schedule boss/nightly"
    assert f"of {whose}, above it" in (child.error or "")
    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, CHILD_WAITS)
    assert job.not_before == child.not_before is not None, "neither holds a worker till then"

    bench.clock.advance(timedelta(days=1))
    assert anyio.run(wake_jobs, bench.context) == 2
    done = bench.execute(job.id)

    assert (done.status, bench.job(child.id).status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)


@pytest.mark.parametrize("helper", ["helper", "boss"])
def test_what_is_used_below_is_the_agents_and_its_schedules_and_the_fleets_once(
    tmp_path: Path, helper: str
) -> None:
    script: list[Step] = [Say("asking"), Spend(used(10))]
    bench = family(tmp_path, helper=helper, nightly=NO_LIMITS)
    if helper == "boss":
        agents = dict(bench.context.agents)
        agents["boss"] = agent_of(tmp_path, "boss", script, NO_LIMITS)
        bench.context = replace(bench.context, agents=agents)

    job = bench.run(schedule="nightly")

    assert job.status is JobStatus.COMPLETED
    day, total = day_of(bench.clock.now()), (40 if helper == "helper" else 20) * CENT
    assert bench.reader.spent(day, None, None).spend == total
    assert bench.reader.spent(None, None, None).spend == total
    assert bench.reader.spent(day, "boss", None).spend == total
    assert bench.reader.spent(day, "boss", "nightly").spend == total
    by_agent = bench.reader.spent_by_agent(day)
    assert by_agent == {agent: bench.reader.spent(day, agent, None) for agent in by_agent}
    assert by_agent["boss"].spend == total
    assert bench.reader.spent_by_agent("1999-01-01") == {}
    assert bench.reader.spent(day, "helper", None).spend == (30 * CENT if helper == "helper" else 0)


def asks(number: int, spent: int, asked: int) -> CountUsage:
    """Job `number` has spent so much and asks for more, of a day of `boss` of a hundred."""
    day = day_of(BEGINNING)
    budget = Budget(scope=Scope.AGENT, name=LimitName.SPEND, maximum=100, day=day, agent="boss")
    return CountUsage(
        job_id=job_id(number),
        epoch=1,
        at=BEGINNING,
        total=Totals(usage=Usage(cost_microusd=MicroUsd(spent))),
        last_seq=1,
        asked=Used(spend=asked),
        budgets=(budget,),
    )


def child_of(boss: int, number: int) -> SubmitJob:
    change = submit(number, agent="helper")
    return replace(change, job=replace(change.job, parent_job_id=job_id(boss)))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_jobs_below_have_set_aside_is_not_there_for_others(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path, FakeClock())
    family: list[Change] = [submit(1, agent="boss"), child_of(1, 2), child_of(1, 3)]
    stranger = submit(4, agent="helper")
    begun = [start(number) for number in (1, 2, 3, 4)]
    asked: list[Change] = [
        asks(4, 0, 90),  # of no boss
        asks(2, 0, 60),
        asks(3, 0, 60),
        asks(3, 0, 40),
        asks(2, 50, 0),  # it needed less
        asks(3, 0, 51),
        asks(1, 0, 11),
    ]

    async def apply() -> list[Applied | Refused]:
        try:
            return list(await store.apply([*family, stranger, *begun, *asked]))
        finally:
            await store.close()

    answers = anyio.run(apply)[-len(asked) :]

    refused = [place for place, one in enumerate(answers) if isinstance(one, Refused)]
    assert refused == [2, 5, 6]
