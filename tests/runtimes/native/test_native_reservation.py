"""What is reserved for an answer shrinks to what is left; an answer cut off by that suspends its job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.resuming import resume
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.journal.event import AssistantEvent, ToolUseEvent
from nightherd.model.limits.limits import NO_LIMITS, DayLimits, LimitName, Limits, OnLimit
from nightherd.model.limits.spending import Reservation
from nightherd.model.units import MicroUsd
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say, Tokens
from runtimes.native.native_stage import NativeStage

CENT = 10_000
FULL = 16_384
FIVE_CENTS = Limits(spend=MicroUsd(5 * CENT))
TOUCH = Call("Bash", {"command": "touch ran"})


def bench_for(tmp_path: Path, api: MessagesApi, limits: Limits = NO_LIMITS, **more: Any) -> Bench:
    agent = replace(
        AGENT,
        runtime=NATIVE,
        model="anthropic:claude-sonnet-5-5",
        working_directory=str(tmp_path),
        permission_mode="bypassPermissions",
        limits=limits,
        **more,
    )
    environment = NativeStage(tmp_path).environment(api)
    return Bench(NativeRuntime(), agent=agent, environment=environment)  # type: ignore[arg-type]  # any runtime does


def sizes(api: MessagesApi) -> list[int]:
    """How long each answer was allowed to be."""
    return [request.body["max_tokens"] for request in api.asked]


def test_a_small_limit_of_dollars_makes_a_small_answer(tmp_path: Path) -> None:
    with MessagesApi(Say(text="All done.")) as api:
        job = bench_for(tmp_path, api, FIVE_CENTS).run()

    assert (job.status, job.error) == (JobStatus.COMPLETED, None)
    (size,) = sizes(api)
    assert 256 <= size < FULL


def test_a_small_limit_of_tokens_makes_a_small_answer(tmp_path: Path) -> None:
    with MessagesApi(Say(text="All done.")) as api:
        job = bench_for(tmp_path, api, Limits(tokens=12_000)).run()

    assert (job.status, job.error) == (JobStatus.COMPLETED, None)
    assert sizes(api)[0] < 12_000


@pytest.mark.parametrize("name", ["day", "fleet"])
def test_what_is_left_of_a_shared_budget_makes_a_small_answer(name: str, tmp_path: Path) -> None:
    with MessagesApi(Say(text="All done.")) as api:
        day = Limits(per_day=DayLimits(spend=MicroUsd(5 * CENT)))
        bench = bench_for(tmp_path, api, day if name == "day" else NO_LIMITS)
        if name == "fleet":
            bench.context = replace(bench.context, budget=FIVE_CENTS)
        held: list[int] = []

        def note(_: object) -> None:
            held.extend(one.cost_microusd for one in bench.store._rows.all(Reservation))

        job = bench.run(on_event=note)

    assert (job.status, job.error) == (JobStatus.COMPLETED, None)
    assert sizes(api)[0] < FULL
    assert 0 < max(held) <= 5 * CENT


def test_the_answer_grows_again_with_the_limit(tmp_path: Path) -> None:
    with MessagesApi(Say(text="All done.")) as api:
        bench_for(tmp_path, api, Limits(spend=MicroUsd(500 * CENT))).run()

    assert sizes(api) == [FULL]


def test_a_job_that_could_not_even_be_asked_is_suspended_first(tmp_path: Path) -> None:
    with MessagesApi(Say(text="never")) as api:
        job = bench_for(tmp_path, api, Limits(spend=MicroUsd(CENT // 10))).run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert api.asked == []
    assert job.error is not None
    assert job.error.startswith("spend: the next turn could bring it to $0.")


CUT = Say(
    text="I begin with",
    calls=(TOUCH,),
    stop_reason="max_tokens",
    tokens=Tokens(input=2_000, output=1_500),
)


def cut_off(tmp_path: Path, api: MessagesApi, limits: Limits) -> tuple[Bench, Job]:
    bench = bench_for(tmp_path, api, limits)
    return bench, bench.run()


def test_an_answer_that_was_cut_off_suspends_the_job_and_none_of_its_calls_runs(
    tmp_path: Path,
) -> None:
    with MessagesApi(CUT, Say(text="never")) as api:
        bench, job = cut_off(tmp_path, api, FIVE_CENTS)

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.LIMIT)
    assert (job.error_code, job.turns) == ("spend_exceeded", 0)
    assert not (tmp_path / "ran").exists()
    assert len(api.asked) == 1
    assert (job.input_tokens, job.output_tokens) == (2_000, 1_500)
    lines = bench.journal(job.id)
    assert [line for line in lines if isinstance(line, ToolUseEvent)] == []
    said = [one.content for one in lines if isinstance(one, AssistantEvent) and one.content]
    assert "".join(said) == "I begin with"


def test_a_raised_job_goes_on_from_what_was_cut_off(tmp_path: Path) -> None:
    with MessagesApi(CUT, Say(text="All done.")) as api:
        bench, job = cut_off(tmp_path, api, FIVE_CENTS)
        done = resume(bench, job, spend=500 * CENT)

    assert (done.status, done.error) == (JobStatus.COMPLETED, None)
    assert sizes(api)[1] == FULL
    assert "cut off" in api.asked[1].texts[-1]
    assert "I begin with" in api.asked[1].texts[-1]
    assert not (tmp_path / "ran").exists()


def test_a_job_that_fails_at_its_limit_fails_when_its_answer_is_cut_off(tmp_path: Path) -> None:
    failing = replace(FIVE_CENTS, outcomes={LimitName.SPEND: OnLimit.FAIL})
    with MessagesApi(CUT, Say(text="never")) as api:
        _, job = cut_off(tmp_path, api, failing)

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.LIMIT)
    assert not (tmp_path / "ran").exists()


def test_an_answer_of_full_length_that_is_cut_off_is_no_matter_of_limits(tmp_path: Path) -> None:
    whole = Say(text="on and on", stop_reason="max_tokens")
    with MessagesApi(whole) as api:
        job = bench_for(tmp_path, api).run()

    assert (job.status, job.error_code) == (JobStatus.FAILED, "output_limit")
