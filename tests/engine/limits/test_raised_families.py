"""Families at the limits of those above: whose limit it is says so, and once it is raised all of it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.children.test_spawning import HELPING, agent_of, ask, bench_of, children
from engine.limits.resuming import resume
from engine.limits.turns import CENT, used
from nightherd.engine.operations.raise_limits import check_raised
from nightherd.errors import RefusedError
from nightherd.model.agents.script import Say, Spend, Step
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.limits.limits import NO_LIMITS, LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.next_step import Action, NextStep

THIRTY = Limits(spend=MicroUsd(30 * CENT))
LONG: list[Step] = [step for n in range(3) for step in (Say(f"part {n}"), Spend(used(10)))]


def three_levels(tmp_path: Path, limits: Limits, last: list[Step], *, asks: int = 1) -> Bench:
    """`boss` asks `helper`, who asks `last` so many times."""
    middle = [step for n in range(asks) for step in ask("last", f"Help {n}.")]
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], [*middle, Say("helped")], limits)
    found = agent_of(tmp_path, "last", last, NO_LIMITS)
    agents = {**bench.context.agents, "last": found}
    bench.context = replace(bench.context, agents=agents)
    return bench


def successes(bench: Bench, job: Job) -> list[bool]:
    found = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    return [bool(one.success) for one in found]


@pytest.mark.parametrize("raised", [{"spawns": 2}, {"spawns": 9}])
def test_the_child_that_was_one_too_many_is_made_once_there_may_be_more(
    tmp_path: Path, raised: dict[str, int]
) -> None:
    steps = [*ask("helper"), *ask("helper"), Say("done")]
    bench = bench_of(tmp_path, steps, HELPING, Limits(spawns=1))
    job = bench.run()
    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spawns_exceeded")

    done = resume(bench, job, **raised)

    assert (done.status, done.turns) == (JobStatus.COMPLETED, 3)
    assert len(children(bench, job)) == 2
    assert successes(bench, job) == [True, True], "the call was not answered with a refusal"


@pytest.mark.parametrize(
    ("limits", "raised", "asks"),
    [(Limits(spawns=2), {"spawns": 3}, 2), (Limits(depth=1), {"depth": 2}, 1)],
)
def test_what_children_there_may_be_below_a_job_is_raised_at_that_job(
    tmp_path: Path, limits: Limits, raised: dict[str, int], asks: int
) -> None:
    bench = three_levels(tmp_path, limits, HELPING, asks=asks)
    job = bench.run()
    (middle,) = children(bench, job)
    (name,) = raised
    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, f"{name}_exceeded")
    assert (middle.status, middle.error_code) == (JobStatus.SUSPENDED, f"{name}_exceeded")

    done = resume(bench, job, **raised)

    assert done.status is JobStatus.COMPLETED
    assert len(children(bench, middle)) == asks
    assert successes(bench, middle) == [True] * asks


@pytest.mark.parametrize("outcome", [OnLimit.SUSPEND, OnLimit.HOOK])
def test_a_job_whose_limit_is_met_below_it_waits_at_its_own_limit(
    tmp_path: Path, outcome: OnLimit
) -> None:
    limits = replace(THIRTY, outcomes={LimitName.SPEND: outcome})
    bench = three_levels(tmp_path, limits, LONG)

    job = bench.run()

    (middle,) = children(bench, job)
    (last,) = children(bench, middle)
    assert (job.suspend_reason, job.error_code) == (SuspendReason.LIMIT, "spend_exceeded")
    assert advice_on(job).text() == f"resume {job.id} and raise spend to 0.60"
    kept: Any = bench.reader.list_checkpoints(job.id)[-1].header["suspension"]
    assert (kept["code"], kept["current_max"]) == ("spend_exceeded", 0.3)
    assert kept["current_value"] == 0.3
    assert kept["on_reached"] == outcome.value, "whoever is asked about it is obeyed"
    assert (middle.suspend_reason, middle.error_code) == (SuspendReason.BUDGET, CHILD_WAITS)
    assert (last.suspend_reason, last.error_code) == (SuspendReason.BUDGET, "spend_exceeded")
    assert job.id in (last.error or ""), "whose limit it is"
    assert advice_on(last).step == NextStep(Action.SHOW_JOB, job=middle.id)

    done = resume(bench, job, spend=100 * CENT)

    assert done.status is JobStatus.COMPLETED
    assert [bench.job(one.id).status for one in (middle, last)] == [JobStatus.COMPLETED] * 2
    assert successes(bench, job) == successes(bench, middle) == [True]


def test_a_job_that_waits_at_a_limit_met_below_it_goes_on_once_that_job_is_cancelled(
    tmp_path: Path,
) -> None:
    limits = Limits(spend=MicroUsd(35 * CENT))
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], LONG, limits)
    job = bench.run()
    (child,) = children(bench, job)
    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")

    anyio.run(bench.store.apply, [CancelJob(job_id=child.id, at=bench.clock.now())])

    assert bench.job(job.id).status is JobStatus.PENDING
    assert bench.execute(job.id).status is JobStatus.COMPLETED, "with what it has left"
    assert successes(bench, job) == [False]


@pytest.mark.parametrize(("spawns", "is_refused"), [(1, True), (2, False)])
def test_as_many_children_as_there_are_already_are_no_new_maximum(
    tmp_path: Path, spawns: int, is_refused: bool
) -> None:
    steps = [*ask("helper"), *ask("helper"), Say("done")]
    bench = bench_of(tmp_path, steps, HELPING, Limits(spawns=1))
    job = bench.run()
    raised = JobOptions(limits={"spawns": spawns})

    if not is_refused:
        check_raised(job, bench.agent, raised, bench.reader)
        return
    with pytest.raises(RefusedError, match="has used 1 already"):
        check_raised(job, bench.agent, raised, bench.reader)
