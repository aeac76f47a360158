"""Where a limit of dollars applies, a native job starts only when the price of its model is known."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, due_slot
from engine.limits.resuming import resume
from nightherd.engine.operations.schedules import slot_change
from nightherd.errors import AgentBlockedError
from nightherd.model.agents.script import Say as ScriptSay
from nightherd.model.agents.script import Spend, compile_script
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions, ParentLimits
from nightherd.model.journal.event import AssistantEvent
from nightherd.model.limits.limits import NO_LIMITS, DayLimits, Limits
from nightherd.model.limits.spending import ModelPrice, Prices
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.runtimes.claude.capabilities import CLI, SDK
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.runtimes.prices import is_published
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Say, Tokens
from runtimes.native.native_stage import NativeStage

CENT = 10_000
OWN = "anthropic:my-own-model-7b"
KNOWN = "anthropic:claude-sonnet-5-5"
HALF_A_DOLLAR = Limits(spend=MicroUsd(50 * CENT))
DAILY = Limits(per_day=DayLimits(spend=MicroUsd(50 * CENT)))
HOURLY = Schedule(
    name="hourly", rule=Interval(every=timedelta(hours=1)), prompt="go", limits=HALF_A_DOLLAR
)


def bench_for(
    tmp_path: Path,
    limits: Limits = NO_LIMITS,
    *,
    api: MessagesApi | None = None,
    prices: Prices | None = None,
    budget: Limits = NO_LIMITS,
    **agent: Any,
) -> Bench:
    own: dict[str, Any] = {"model": OWN, "runtime": NATIVE, **agent}
    environment = NativeStage(tmp_path).environment(api)
    bench = Bench(
        NativeRuntime(),  # type: ignore[arg-type]  # any runtime does
        agent=replace(AGENT, working_directory=str(tmp_path), limits=limits, **own),
        environment=environment,
    )
    bench.context = replace(
        bench.context, prices=prices or {}, has_price=is_published, budget=budget
    )
    return bench


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        (HALF_A_DOLLAR, NO_LIMITS),
        (DAILY, NO_LIMITS),
        (NO_LIMITS, HALF_A_DOLLAR),
        (NO_LIMITS, DAILY),
    ],
)
def test_a_job_of_an_unpriced_model_is_refused_where_dollars_are_limited(
    limits: Limits, budget: Limits, tmp_path: Path
) -> None:
    bench = bench_for(tmp_path, limits, budget=budget)

    with pytest.raises(AgentBlockedError, match=r"my-own-model-7b.*'prices'"):
        bench.submit()


def test_the_limits_of_a_job_and_of_its_parents_count_too(tmp_path: Path) -> None:
    bench = bench_for(tmp_path)
    parent = bench.submit().job
    above = ParentLimits(job=parent.id, limits={"spend": 50 * CENT})

    with pytest.raises(AgentBlockedError):
        bench.submit(overrides=JobOptions(limits={"spend": 50 * CENT}))
    with pytest.raises(AgentBlockedError):
        bench.submit(overrides=JobOptions(within=(above,)))


def test_the_max_budget_of_an_agent_is_a_limit_of_dollars(tmp_path: Path) -> None:
    with pytest.raises(AgentBlockedError):
        bench_for(tmp_path, max_budget_microusd=MicroUsd(50 * CENT)).submit()


def test_a_slot_says_why_there_is_no_job(tmp_path: Path) -> None:
    bench = bench_for(tmp_path, schedules={"hourly": HOURLY})

    made = slot_change(due_slot(bench.agent, HOURLY), bench.context)

    assert made.job is None
    assert "my-own-model-7b" in (made.slot.reason or "")
    assert not made.is_error, "the schedule does not pause itself"


@pytest.mark.parametrize("agent", [{"model": KNOWN, "fallback_model": OWN}, {"model": OWN}])
def test_a_fallback_model_needs_a_price_too(agent: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(AgentBlockedError):
        bench_for(tmp_path, HALF_A_DOLLAR, **agent).submit()


@pytest.mark.parametrize(
    "agent",
    [
        {"model": KNOWN},
        {"model": "openai-chat:gpt-5"},
        {"runtime": SDK},
        {"runtime": CLI},
        {"script": compile_script([ScriptSay("x"), Spend(Usage(cost_microusd=MicroUsd(1)))])},
    ],
)
def test_what_reports_its_cost_or_has_a_published_price_may_start(
    agent: dict[str, Any], tmp_path: Path
) -> None:
    assert bench_for(tmp_path, HALF_A_DOLLAR, **agent).submit().is_new


def test_without_a_limit_of_dollars_any_model_may_run(tmp_path: Path) -> None:
    with MessagesApi(Say(text="done", model="my-own-model-7b")) as api:
        job = bench_for(tmp_path, Limits(turns=5, tokens=100_000), api=api).run()

    assert (job.status, job.cost_microusd) == (JobStatus.COMPLETED, 0)


@pytest.mark.parametrize("name", [OWN, "my-own-model-7b"])
def test_a_declared_price_is_what_is_counted(name: str, tmp_path: Path) -> None:
    price = ModelPrice(
        input=MicroUsd(1_000_000),
        output=MicroUsd(2_000_000),
        cache_write=MicroUsd(3_000_000),
        cache_read=MicroUsd(500_000),
    )
    tokens = Tokens(input=1_000, output=100, cache_written=10, cache_read=20)
    with MessagesApi(Say(text="done", tokens=tokens, model="my-own-model-7b")) as api:
        bench = bench_for(tmp_path, HALF_A_DOLLAR, api=api, prices={name: price})
        job = bench.run()

    assert (job.status, job.cost_microusd) == (JobStatus.COMPLETED, 1_000 + 200 + 30 + 10)
    sources = [
        (line.extra or {}).get("cost_source")
        for line in bench.journal(job.id)
        if isinstance(line, AssistantEvent) and not line.partial
    ]
    assert sources == ["fleet-file"]


def test_a_declared_price_stops_the_job_at_its_limit(tmp_path: Path) -> None:
    dear = ModelPrice(input=MicroUsd(900_000_000), output=MicroUsd(900_000_000))
    with MessagesApi(Say(text="never")) as api:
        job = bench_for(tmp_path, HALF_A_DOLLAR, api=api, prices={OWN: dear}).run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert api.asked == []


def test_a_local_model_costs_nothing(tmp_path: Path) -> None:
    with MessagesApi(Say(text="done", model="my-own-model-7b")) as api:
        bench = bench_for(tmp_path, HALF_A_DOLLAR, api=api, prices={OWN: ModelPrice()})
        job = bench.run()

    assert (job.status, job.cost_microusd) == (JobStatus.COMPLETED, 0)


def test_a_job_that_gets_its_limit_later_waits_before_it_spends(tmp_path: Path) -> None:
    with MessagesApi(Say(text="never", model="my-own-model-7b")) as api:
        bench = bench_for(tmp_path, api=api)
        job = bench.submit().job
        bench.context = replace(bench.context, budget=HALF_A_DOLLAR)
        waiting = bench.execute(job.id)

        assert api.asked == []
        assert (waiting.status, waiting.error_code) == (JobStatus.SUSPENDED, "price_unknown")
        assert waiting.suspend_reason is SuspendReason.LIMIT

        bench.context = replace(bench.context, prices={OWN: ModelPrice()})
        done = resume(bench, waiting)

    assert done.status is JobStatus.COMPLETED
