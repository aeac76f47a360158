"""A job is kept to its limits: it waits, or fails, before it goes beyond, and goes on when they are raised."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.resuming import resume
from engine.limits.turns import CENT, FOUR_TURNS, used
from nightherd.host.system import SystemClock
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Say, Spend, compile_script
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.overrides import overridden
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, ToolResultEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.runtimes.claude.capabilities import SDK
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.testing.runtime import PlayedRuntime


def claude(limits: Limits) -> Agent:
    """An agent whose runtime is only watched."""
    return replace(AGENT, runtime=SDK, limits=limits)


def scripted(tmp_path: Path, limits: Limits, *, turns: int = 4) -> Agent:
    """An agent whose runtime asks before every turn; each costs ten cents and twenty tokens."""
    steps = [step for n in range(turns) for step in (Say(f"turn {n + 1}"), Spend(used(10)))]
    return replace(
        AGENT,
        script=compile_script(steps),
        limits=limits,
        working_directory=str(tmp_path),
    )


def bench_of(agent: Agent, events: tuple[Event, ...] = FOUR_TURNS) -> Bench:
    if agent.script is not None:
        return Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    return Bench(PlayedRuntime(events), agent=agent)


def suspended_line(bench: Bench, job: Job) -> SystemEvent:
    last = bench.journal(job.id)[-1]
    assert isinstance(last, SystemEvent)
    assert last.subtype is SystemSubtype.SUSPENDED
    return last


def test_a_watched_job_is_stopped_before_its_next_turn_when_nothing_is_left() -> None:
    bench = bench_of(claude(Limits(spend=MicroUsd(20 * CENT))))

    job = bench.run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.LIMIT)
    assert (job.error_code, job.turns, job.cost_microusd) == ("spend_exceeded", 2, 20 * CENT)
    assert suspended_line(bench, job).extra == {
        "reason": "limit",
        "code": "spend_exceeded",
        "current_value": 0.2,
        "current_max": 0.2,
    }


def test_a_watched_job_goes_beyond_by_one_turn_at_most_and_says_by_how_much() -> None:
    bench = bench_of(claude(Limits(spend=MicroUsd(15 * CENT))))

    job = bench.run()

    assert job.cost_microusd == 20 * CENT
    assert job.error == "spend: $0.20, of the job's limit of $0.15, $0.05 over it"
    results = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert len(results) == 1, "the tool of the turn that went beyond has not run"


def test_the_end_of_a_job_is_never_taken_from_it() -> None:
    bench = bench_of(claude(Limits(spend=MicroUsd(35 * CENT))))

    job = bench.run()

    assert (job.status, job.cost_microusd) == (JobStatus.COMPLETED, 40 * CENT)


def test_an_asking_runtime_is_refused_before_it_spends(tmp_path: Path) -> None:
    bench = bench_of(scripted(tmp_path, Limits(spend=MicroUsd(25 * CENT))))

    job = bench.run()

    assert (job.status, job.turns, job.cost_microusd) == (JobStatus.SUSPENDED, 2, 20 * CENT)
    assert suspended_line(bench, job).extra == {
        "reason": "limit",
        "code": "spend_exceeded",
        "current_value": 0.3,
        "current_max": 0.25,
        "is_ahead": True,
    }


@pytest.mark.parametrize(
    ("limits", "code", "turns"),
    [
        (Limits(turns=3), "turns_exceeded", 3),
        (Limits(tokens=45), "tokens_exceeded", 2),
        (Limits(tokens=40), "tokens_exceeded", 2),
        (Limits(spend=MicroUsd(5)), "spend_exceeded", 0),
    ],
)
def test_every_limit_has_its_code(tmp_path: Path, limits: Limits, code: str, turns: int) -> None:
    job = bench_of(scripted(tmp_path, limits)).run()

    assert (job.status, job.error_code, job.turns) == (JobStatus.SUSPENDED, code, turns)


@pytest.mark.parametrize(
    "limits", [Limits(turns=4), Limits(tokens=80), Limits(spend=MicroUsd(40 * CENT))]
)
def test_a_job_that_needs_exactly_its_limit_ends(tmp_path: Path, limits: Limits) -> None:
    job = bench_of(scripted(tmp_path, limits)).run()

    assert (job.status, job.turns) == (JobStatus.COMPLETED, 4)


@pytest.mark.parametrize(
    ("limits", "exit_reason", "code"),
    [
        (Limits(turns=2), ExitReason.MAX_TURNS, "turns_exceeded"),
        (Limits(spend=MicroUsd(20 * CENT)), ExitReason.LIMIT, "spend_exceeded"),
        (Limits(tokens=40), ExitReason.LIMIT, "tokens_exceeded"),
    ],
)
@pytest.mark.parametrize("is_asking", [True, False])
def test_a_limit_may_end_the_job_instead(
    tmp_path: Path, limits: Limits, exit_reason: ExitReason, code: str, is_asking: bool
) -> None:
    failing = replace(limits, outcomes=dict.fromkeys(LimitName, OnLimit.FAIL))
    bench = bench_of(scripted(tmp_path, failing) if is_asking else claude(failing))

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, exit_reason)
    assert (job.error_code, job.turns) == (code, 2)
    assert any(isinstance(one, ErrorEvent) for one in bench.journal(job.id))


def test_the_older_spellings_fail_the_job(tmp_path: Path) -> None:
    by_turns = replace(scripted(tmp_path, Limits()), max_turns=2)
    by_money = replace(scripted(tmp_path, Limits()), max_budget_microusd=MicroUsd(25 * CENT))

    first, second = bench_of(by_turns).run(), bench_of(by_money).run()

    assert (first.status, first.exit_reason, first.turns) == (
        JobStatus.FAILED,
        ExitReason.MAX_TURNS,
        2,
    )
    assert (second.status, second.exit_reason, second.turns) == (
        JobStatus.FAILED,
        ExitReason.LIMIT,
        2,
    )


def test_turns_that_were_raised_are_the_agents_turns_for_this_job() -> None:
    """Runtimes count the turns of `max_turns` themselves."""
    agent = replace(AGENT, max_turns=2)

    assert overridden(agent, JobOptions(limits={"turns": 9})).max_turns == 9
    assert overridden(agent, JobOptions(max_turns=4, limits={"turns": 9})).max_turns == 9
    assert overridden(agent, JobOptions(max_turns=4, limits={"spend": 9})).max_turns == 4
    assert overridden(AGENT, JobOptions(limits={"turns": 9})).max_turns is None


def test_a_raised_limit_lets_the_same_job_go_on_and_its_cost_go_on_counting(tmp_path: Path) -> None:
    bench = bench_of(scripted(tmp_path, Limits(spend=MicroUsd(25 * CENT))))
    waiting = bench.run()

    job = resume(bench, waiting, spend=100 * CENT)

    assert (job.id, job.status) == (waiting.id, JobStatus.COMPLETED)
    assert (job.turns, job.cost_microusd) == (4, 40 * CENT)


def test_a_job_resumed_without_more_waits_again_and_nothing_is_done(tmp_path: Path) -> None:
    bench = bench_of(scripted(tmp_path, Limits(turns=2)))
    waiting = bench.run()

    job = resume(bench, waiting)

    assert (job.status, job.error_code, job.turns) == (JobStatus.SUSPENDED, "turns_exceeded", 2)
    assert job.cost_microusd == waiting.cost_microusd


def test_a_run_that_says_nothing_is_stopped_when_its_time_is_over() -> None:
    agent = claude(Limits(duration=timedelta(milliseconds=20)))
    runtime = PlayedRuntime(FOUR_TURNS[:1], is_endless=True)

    job = Bench(runtime, agent=agent).run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "duration_exceeded")
    assert runtime.was_closed


def test_time_of_running_counts_over_all_executions() -> None:
    bench = bench_of(claude(Limits(duration=timedelta(seconds=100))))
    bench.runtime = PlayedRuntime(
        FOUR_TURNS, before_each=lambda event: bench.clock.advance(timedelta(seconds=40))
    )

    job = bench.run()
    again = resume(bench, job, duration=90_000)

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "duration_exceeded")
    assert (again.status, again.error_code) == (JobStatus.SUSPENDED, "duration_exceeded")
    assert len(bench.runtime.requests) == 1, "there was no time left to begin with"


def test_what_was_spent_counts_when_the_record_of_it_is_lost(tmp_path: Path) -> None:
    agent = scripted(tmp_path, Limits(spend=MicroUsd(20 * CENT)))
    (tmp_path / "jobs").mkdir()
    journals = JournalFiles(tmp_path / "jobs", tmp_path / "blobs", clock=SystemClock())
    bench = Bench(ScriptedRuntime(), agent=agent, journals=journals)  # type: ignore[arg-type]
    job = bench.run()
    assert job.cost_microusd == 20 * CENT
    (tmp_path / "jobs" / f"{job.id}.jsonl").unlink()

    done = resume(bench, job, spend=100 * CENT)

    assert (done.status, done.cost_microusd) == (JobStatus.COMPLETED, 60 * CENT)
    (lost,) = (
        one
        for one in bench.journal(job.id)
        if isinstance(one, SystemEvent) and one.subtype is SystemSubtype.WARNING
    )
    assert lost.content is not None
    assert lost.content.startswith("the journal of this job was lost")
    own = [one.cost_microusd for one in bench.context.reader.list_executions(job.id)]
    assert sorted(own) == [20 * CENT, 40 * CENT]
