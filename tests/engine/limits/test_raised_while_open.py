"""A job is given more before it comes to its limit: while it waits for a worker, and while it runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.children.test_spawning import ask, children
from engine.children.test_spawning import bench_of as family_of
from engine.limits.test_job_limits import bench_of, claude, scripted
from engine.limits.turns import CENT, FOUR_TURNS, used
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.operations.requests import Resume
from nightherd.engine.operations.resume import resume_job
from nightherd.engine.operations.wait import wait_for_job
from nightherd.errors import RefusedError
from nightherd.model.agents.script import Say, Spend, Step
from nightherd.model.change import Applied, Change
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import LoseExecution, StartExecution
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.overrides import AmendJob
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals

SPEND = Limits(spend=MicroUsd(25 * CENT))


def apply_now(bench: Bench, change: Change) -> Applied:
    """In the middle of a run: the memory store waits for nothing."""
    try:
        bench.store.apply([change]).send(None)
    except StopIteration as done:
        (answer,) = done.value
        assert isinstance(answer, Applied)
        return answer
    raise AssertionError("it waits")


def raising(bench: Bench, job: Job, at_turn: int, **limits: int) -> Callable[[Event], None]:
    """Somebody gives `job` more when whoever runs has taken so many turns."""

    def on_event(event: Event) -> None:
        if isinstance(event, AssistantEvent) and event.turn == at_turn:
            apply_now(bench, AmendJob(job_id=job.id, limits=limits))

    return on_event


def wish(bench: Bench, job: Job, limits: dict[str, int], prompt: str | None = None) -> Job:
    """As `jobs resume --raise` asks for it."""
    request = Resume(job_id=job.id, prompt=prompt, limits=limits)

    async def go() -> Job:
        return await resume_job(request, bench.agent, bench.context, rescue=nobody)

    return anyio.run(go)


async def nobody() -> None:
    """Every worker lives."""


@pytest.mark.parametrize("outcome", OnLimit)
def test_a_job_that_runs_goes_on_beyond_the_limit_that_was_raised_meanwhile(
    tmp_path: Path, outcome: OnLimit
) -> None:
    limits = replace(SPEND, outcomes={LimitName.SPEND: outcome})
    bench = bench_of(scripted(tmp_path, limits))
    job = bench.submit().job

    done = bench.execute(job.id, on_event=raising(bench, job, 2, spend=35 * CENT))

    expected = JobStatus.FAILED if outcome is OnLimit.FAIL else JobStatus.SUSPENDED
    assert (done.status, done.turns, done.epoch) == (expected, 3, 1), "in the same execution"
    assert "the job's limit of $0.35" in (done.error or "")
    header = bench.reader.list_checkpoints(job.id)[-1].header
    assert header["limits"] == {"spend": 35 * CENT}


def test_a_watched_job_goes_on_beyond_the_limit_that_was_raised_meanwhile() -> None:
    bench = bench_of(claude(SPEND))
    job = bench.submit().job

    done = bench.execute(job.id, on_event=raising(bench, job, 2, spend=99 * CENT))

    assert (done.status, done.cost_microusd) == (JobStatus.COMPLETED, 40 * CENT)


@pytest.mark.parametrize(
    ("limits", "code", "raised"),
    [
        (SPEND, "limit", {"spend": 99 * CENT}),
        (Limits(turns=2, outcomes={LimitName.TURNS: OnLimit.FAIL}), "max_turns", {"turns": 9}),
    ],
)
def test_a_run_that_stopped_at_what_it_was_told_is_followed_by_another_at_once(
    limits: Limits, code: str, raised: dict[str, int]
) -> None:
    stopped = (*FOUR_TURNS[:6], ErrorEvent(message="enough", code=code))
    bench = bench_of(claude(limits), stopped)
    job = bench.submit().job

    waiting = bench.execute(job.id, on_event=raising(bench, job, 1, **raised))

    assert (waiting.status, waiting.error) == (JobStatus.PENDING, None)
    assert wish(bench, waiting, raised).status is JobStatus.PENDING, "the same once more"


def test_a_job_whose_time_was_raised_while_it_ran_goes_on_at_once() -> None:
    bench = bench_of(claude(Limits(duration=timedelta(seconds=100))))
    advanced = replace_runtime(bench, timedelta(seconds=40))
    job = bench.submit().job

    done = bench.execute(job.id, on_event=raising(bench, job, 1, duration=9_000_000))

    assert (done.status, done.epoch) == (JobStatus.COMPLETED, 1)
    assert advanced == [timedelta(seconds=40)] * len(FOUR_TURNS)


def replace_runtime(bench: Bench, by: timedelta) -> list[timedelta]:
    """Each event takes that long."""
    advanced: list[timedelta] = []

    def advance(event: Event) -> None:
        advanced.append(by)
        bench.clock.advance(by)

    bench.runtime = type(bench.runtime)(FOUR_TURNS, before_each=advance)
    return advanced


def test_a_limit_raised_when_the_job_was_about_to_wait_lets_it_go_on(tmp_path: Path) -> None:
    """The last word is on record already, and the row not yet."""
    bench = bench_of(scripted(tmp_path, SPEND))
    job = bench.submit().job

    def on_event(event: Event) -> None:
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.SUSPENDED:
            apply_now(bench, AmendJob(job_id=job.id, limits={"spend": 99 * CENT}))

    async def watch() -> Job:
        return await wait_for_job(
            job.id,
            bench.agent,
            bench.context,
            on_event=on_event,
            on_wait=lambda why: None,
            stopper=Stopper(),
        )

    done = anyio.run(watch)

    assert (done.status, done.turns, done.epoch) == (JobStatus.COMPLETED, 4, 2)


def test_what_a_job_above_was_given_while_a_job_below_runs_is_there_for_it(tmp_path: Path) -> None:
    busy: list[Step] = [step for n in range(4) for step in (Say(f"turn {n}"), Spend(used(10)))]
    bench = family_of(tmp_path, [*ask("helper"), Say("done")], busy, SPEND)
    job = bench.submit().job
    run = bench.context.run_job
    assert run is not None
    more = raising(bench, job, 1, spend=99 * CENT)

    async def run_child(*args: Any, **named: Any) -> Job:
        return await run(*args, **{**named, "on_event": more})

    bench.context = replace(bench.context, run_job=run_child)

    done = bench.execute(job.id)

    (child,) = children(bench, job)
    assert (done.status, done.epoch) == (JobStatus.COMPLETED, 1)
    assert (child.status, child.turns) == (JobStatus.COMPLETED, 4)


def test_a_job_that_waits_for_a_worker_begins_with_what_it_is_given(tmp_path: Path) -> None:
    bench = bench_of(scripted(tmp_path, SPEND))
    job = bench.submit().job

    assert wish(bench, job, {"spend": 99 * CENT, "turns": 3}).status is JobStatus.PENDING

    done = bench.execute(job.id)
    assert (done.status, done.error_code, done.turns) == (JobStatus.SUSPENDED, "turns_exceeded", 3)


@pytest.mark.parametrize(
    ("limits", "why"), [({"spend": 24 * CENT}, "a limit of $0.25"), ({"turns": 9}, "no limit")]
)
def test_a_job_that_runs_is_only_given_more(
    tmp_path: Path, limits: dict[str, int], why: str
) -> None:
    bench = bench_of(scripted(tmp_path, SPEND))
    job = taken(bench)

    with pytest.raises(RefusedError, match=why.replace("$", "[$]")):
        wish(bench, job, limits)
    with pytest.raises(RefusedError, match="is running"):
        wish(bench, job, {"spend": 99 * CENT}, prompt="Hurry.")


def taken(bench: Bench) -> Job:
    """A job that a worker has taken."""
    job = bench.submit().job
    start = StartExecution(job_id=job.id, worker=WorkerId("worker-b"), at=bench.clock.now())
    anyio.run(bench.store.apply, [start])
    return bench.job(job.id)


def test_what_is_said_to_an_interrupted_job_is_not_lost(tmp_path: Path) -> None:
    """Nobody had noticed that its worker was gone."""
    bench = bench_of(scripted(tmp_path, SPEND))
    job = taken(bench)
    lost = LoseExecution(
        job_id=job.id, epoch=1, at=bench.clock.now(), reason="gone", max_restarts=5, last_seq=0,
        total=Totals(), own=Totals(),
    )  # fmt: skip

    async def rescue() -> None:
        await bench.store.apply([lost])

    async def go() -> Job:
        limits = {"spend": 99 * CENT}
        request = Resume(job_id=job.id, prompt="Mind the test.", limits=limits)
        return await resume_job(request, bench.agent, bench.context, rescue=rescue)

    assert anyio.run(go).status is JobStatus.PENDING
    done = bench.execute(job.id)

    assert done.status is JobStatus.COMPLETED
    said = [one.content for one in bench.journal(job.id) if isinstance(one, SystemEvent)]
    assert "Mind the test." in said
