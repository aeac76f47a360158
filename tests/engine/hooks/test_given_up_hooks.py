"""Jobs that are given up without a word have hooks all the same, run by whoever gave them up."""

from __future__ import annotations

import anyio
from msgspec.structs import replace

from engine.bench import Bench
from engine.hooks.played_hooks import PlayedCarrier, hook, hook_lines, with_hooks
from engine.yard import Yard
from nightherd.errors import FencedError
from nightherd.model.hooks import HookPoint
from nightherd.model.ids import ExecutionId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import describe
from nightherd.model.journal.system import ExecutionStarted, HookRan
from nightherd.ports import HookCall


def lost_job(yard: Yard, *written: HookRan) -> Job:
    """A job whose worker is gone, with what that worker left in its journal."""
    worker = yard.register("worker-gonegone", pid=7)
    yard.dead.add(7)
    job = yard.taken(worker)
    journal = yard.bench.context.journals.open(
        job.id, epoch=1, execution=ExecutionId(f"{job.id}.1")
    )
    journal.append(describe(ExecutionStarted(worker=worker)))
    for payload in written:
        journal.append(describe(payload))
    journal.close()
    return job


def given_up(carrier: PlayedCarrier) -> Yard:
    """Where lost jobs are given up at once."""
    bench = with_hooks(Bench(), carrier, hook(), hook(HookPoint.ON_ERROR))
    yard = Yard(bench)
    yard.max_restarts = 0
    return yard


def test_a_job_that_was_lost_too_often_has_its_hooks_run() -> None:
    carrier = PlayedCarrier()
    yard = given_up(carrier)
    job = lost_job(yard)

    anyio.run(yard.shift().work)

    assert yard.bench.job(job.id).status is JobStatus.FAILED
    assert carrier.ran == ["failed/after_run[0]", "failed/on_error[0]"]
    assert carrier.contexts[0]["job"]["error"]["code"] == "interrupted"
    lines = hook_lines(yard.bench, job.id)
    assert [(ran.id, ran.success) for ran in lines] == [
        ("after_run[0]", None),
        ("after_run[0]", True),
        ("on_error[0]", None),
        ("on_error[0]", True),
    ]


def test_a_job_that_goes_on_has_none_before_it_ends() -> None:
    carrier = PlayedCarrier()
    yard = given_up(carrier)
    yard.max_restarts = 3
    job = lost_job(yard)

    anyio.run(yard.shift().work)

    assert yard.bench.job(job.id).status is JobStatus.COMPLETED
    assert carrier.ran == ["completed/after_run[0]"]


def test_trouble_with_hooks_of_one_job_is_told_and_stops_nothing() -> None:
    def lose(call: HookCall) -> None:
        raise FencedError("the lease is over")

    yard = given_up(PlayedCarrier(before=lose))
    job = lost_job(yard)

    anyio.run(yard.shift().work)

    assert f"hooks of {job.id}: the lease is over" in yard.trouble


def test_jobs_of_agents_that_are_gone_are_left_alone() -> None:
    carrier = PlayedCarrier()
    yard = given_up(carrier)
    other = replace(yard.bench.agent, name="other")
    lost_job(yard)

    anyio.run(yard.shift(other).work)

    assert carrier.ran == []
