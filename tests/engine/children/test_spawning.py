"""Child jobs: made once for each call, within what their parents have left, waited for over restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.resuming import resume
from engine.limits.turns import CENT, used
from nightherd.engine.children import cancel_below
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.runner import run_job, run_taken_job
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Fail, Say, Sleep, Spend, Step, UseTool, compile_script
from nightherd.model.children import narrowed, spawn_key
from nightherd.model.jobs.changes import CancelJob, LoseExecution, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason, TriggerType
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.limits.limits import NO_LIMITS, LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals
from nightherd.runtimes.scripted.runtime import ScriptedRuntime


def ask(agent: str, prompt: str = "Help.") -> list[Step]:
    return [Say("asking"), UseTool("Spawn", {"agent": agent, "prompt": prompt}), Spend(used(10))]


def agent_of(tmp_path: Path, name: str, steps: list[Step], limits: Limits, **more: Any) -> Agent:
    return replace(
        AGENT,
        name=name,
        script=compile_script(steps),
        limits=limits,
        working_directory=str(tmp_path),
        allowed_tools=("Spawn",),
        **more,
    )


def bench_of(
    tmp_path: Path, parent: list[Step], child: list[Step], limits: Limits = NO_LIMITS, **more: Any
) -> Bench:
    boss = agent_of(tmp_path, "boss", parent, limits, **more)
    helper = agent_of(tmp_path, "helper", child, Limits())
    bench = Bench(ScriptedRuntime(), agent=boss)  # type: ignore[arg-type]  # any runtime does
    agents = {"boss": boss, "helper": helper}
    bench.context = replace(bench.context, agents=agents, run_job=run_job, fleet_limit=1)
    return bench


HELPING: list[Step] = [Say("I helped: ${prompt}"), Spend(used(10))]


def children(bench: Bench, job: Job) -> list[Job]:
    return list(bench.reader.jobs_of_parent(job.id))


def result(bench: Bench, job: Job) -> ToolResultEvent:
    return next(one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent))


def test_a_job_gets_the_answer_of_its_child(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, [*ask("helper", "Count."), Say("done")], HELPING)

    job = bench.run()

    (child,) = children(bench, job)
    assert (job.status, child.status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
    assert (child.parent_job_id, child.trigger_type) == (job.id, TriggerType.SPAWNED)
    assert result(bench, job).result == "I helped: Count."
    assert job.cost_microusd == child.cost_microusd == 10 * CENT


def test_a_child_that_fails_is_a_call_that_failed(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], [Fail("broken", "no luck")])

    job = bench.run()

    found = result(bench, job)
    assert (job.status, found.success) == (JobStatus.COMPLETED, False)
    assert "no luck" in (found.error or "")


@pytest.mark.parametrize(
    ("caps", "agent", "why"),
    [
        (None, "nobody", "no agent 'nobody'"),
        (("nightherd.tool.Spawn", "nightherd.spawn.other"), "helper", "may not spawn jobs of"),
        (("nightherd.tool.Spawn", "nightherd.spawn.help*"), "helper", None),
        (("nightherd.spawn.help*",), "helper", None),
        (("nightherd.spawn.other",), "helper", "may not spawn jobs of"),
        (("nightherd.tool.Read",), "helper", "not among the capabilities"),
    ],
)
def test_only_agents_that_are_there_and_allowed_are_asked(
    tmp_path: Path, caps: tuple[str, ...] | None, agent: str, why: str | None
) -> None:
    bench = bench_of(tmp_path, [*ask(agent), Say("done")], HELPING, required_caps=caps)

    job = bench.run()

    assert len(children(bench, job)) == (1 if why is None else 0)
    assert (why or "") in (result(bench, job).error or "")
    if why is None:
        texts = bench.reader.find_texts(children(bench, job)[0].id)
        assert texts is not None
        assert texts.overrides.required_caps == caps, "held to no more than its parent"


@pytest.mark.parametrize(
    ("above", "own", "expected"),
    [
        (None, None, None),
        (None, ("a",), ("a",)),
        (("a",), None, ("a",)),
        (("a.*",), ("a.b", "c"), ("a.b",)),
        (("a.b",), ("a.*", "c"), ("a.b",)),
        ((), ("a",), ()),
        (("a",), (), ()),
        (("a",), ("a",), ("a",)),
    ],
)
def test_a_child_is_never_held_to_less(above: Any, own: Any, expected: Any) -> None:
    assert narrowed(above, own) == expected


@pytest.mark.parametrize("outcome", [OnLimit.SUSPEND, OnLimit.FAIL])
def test_children_are_counted(tmp_path: Path, outcome: OnLimit) -> None:
    limits = Limits(spawns=1, outcomes={LimitName.SPAWNS: outcome})
    bench = bench_of(tmp_path, [*ask("helper"), *ask("helper"), Say("done")], HELPING, limits)

    job = bench.run()

    expected = JobStatus.SUSPENDED if outcome is OnLimit.SUSPEND else JobStatus.FAILED
    assert (job.status, job.error_code) == (expected, "spawns_exceeded")
    assert len(children(bench, job)) == 1


def test_what_children_there_may_be_is_left_to_others_too(tmp_path: Path) -> None:
    limits = Limits(spawns=0, outcomes={LimitName.SPAWNS: OnLimit.HOOK})
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING, limits)

    job = bench.run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spawns_exceeded")
    header = bench.reader.list_checkpoints(job.id)[-1].header
    assert header["suspension"]["on_reached"] == "hook", "whoever is asked is obeyed"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(spend=MicroUsd(30 * CENT), outcomes={LimitName.SPEND: OnLimit.FAIL}), "spend"),
        (Limits(depth=1, outcomes={LimitName.DEPTH: OnLimit.FAIL}), "depth"),
    ],
)
def test_a_child_fails_at_what_its_parent_would_fail_at(
    tmp_path: Path, limits: Limits, code: str
) -> None:
    long = [step for n in range(3) for step in (Say(f"part {n}"), Spend(used(10)))]
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], [*long, *ask("boss")], limits)

    job = bench.run()

    (child,) = children(bench, job)
    assert (child.status, child.error_code) == (JobStatus.FAILED, f"{code}_exceeded")
    assert not result(bench, job).success
    assert job.is_terminal, "nobody waits for somebody to raise it"


def test_levels_are_counted_from_the_job_that_limits_them(tmp_path: Path) -> None:
    bench = bench_of(
        tmp_path, [*ask("helper"), Say("done")], [*ask("boss"), Say("?")], Limits(depth=1)
    )

    job = bench.run()

    (child,) = children(bench, job)
    assert children(bench, child) == []
    assert (child.status, child.error_code) == (JobStatus.SUSPENDED, "depth_exceeded")
    assert job.status is JobStatus.SUSPENDED, "a parent waits with its child"


def test_a_child_can_use_no_more_than_its_parent_has_left(tmp_path: Path) -> None:
    """Ten cents are the parent's own; of thirty a child that wants thirty gets twenty."""
    long: list[Step] = [step for n in range(3) for step in (Say(f"part {n}"), Spend(used(10)))]
    bench = bench_of(
        tmp_path, [*ask("helper"), Say("done")], long, Limits(spend=MicroUsd(30 * CENT))
    )

    job = bench.run()

    (child,) = children(bench, job)
    assert (child.status, child.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.BUDGET)
    assert child.cost_microusd + job.cost_microusd == 30 * CENT
    assert f"of the limit of $0.30 of {job.id}, above it" in (child.error or "")
    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.LIMIT)

    done = resume(bench, job, spend=100 * CENT)

    assert (done.status, bench.job(child.id).status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
    assert children(bench, job) == [bench.job(child.id)], "the same child went on"
    answers = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert [one.success for one in answers] == [True]


def test_what_children_used_counts_against_their_parent(tmp_path: Path) -> None:
    limits = Limits(spend=MicroUsd(25 * CENT))
    bench = bench_of(tmp_path, [*ask("helper"), Say("done"), Spend(used(10))], HELPING, limits)

    job = bench.run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert job.cost_microusd == 10 * CENT


def test_a_restart_in_the_middle_of_a_join_waits_for_the_same_child(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING)
    job = bench.submit().job
    cut_off_in_the_call(bench, job)

    done = bench.execute(job.id)

    (child,) = children(bench, job)
    assert (done.status, child.status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)
    found = [one for one in bench.journal(job.id) if isinstance(one, ToolResultEvent)]
    assert [(one.success, one.result) for one in found] == [(True, "I helped: Help.")]
    assert done.turns == 2


def test_a_worker_that_dies_before_the_child_is_on_record_leaves_it_to_the_next(
    tmp_path: Path,
) -> None:
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING)
    job = bench.submit().job

    class Dead(BaseException):
        """Killed."""

    def die(event: Event) -> None:
        if isinstance(event, ToolUseEvent):
            raise Dead

    with pytest.raises(BaseException, match="|".join(("Dead", "unhandled errors", ""))):
        bench.execute(job.id, on_event=die)
    assert children(bench, job) == []
    lose(bench, job)

    done = bench.execute(job.id)

    (child,) = children(bench, job)
    assert (done.status, child.status, done.turns) == (
        JobStatus.COMPLETED,
        JobStatus.COMPLETED,
        2,
    )
    assert result(bench, job).result == "I helped: Help."


def cut_off_in_the_call(bench: Bench, job: Job) -> None:
    """The worker dies when the child is on record and has not begun."""

    class Dead(BaseException):
        """Killed."""

    async def die(*given: object, **more: object) -> Job:
        raise Dead

    alive = bench.context
    bench.context = replace(alive, run_job=die)
    with pytest.raises(BaseException, match="|".join(("Dead", "unhandled errors", ""))):
        bench.execute(job.id)
    bench.context = alive
    calls = [one for one in bench.journal(job.id) if isinstance(one, ToolUseEvent)]
    assert [one.dedupe_key for one in children(bench, job)] == [
        spawn_key(job.id, calls[0].tool_use_id or "")
    ]
    lose(bench, job)


def lose(bench: Bench, job: Job) -> None:
    """Somebody has seen that the worker is gone."""
    lost = LoseExecution(
        job_id=job.id,
        epoch=1,
        at=bench.clock.now(),
        reason="killed",
        max_restarts=5,
        last_seq=bench.journal(job.id)[-1].seq,
        total=Totals(),
        own=Totals(),
    )
    anyio.run(bench.store.apply, [lost])


def test_cancelling_a_job_cancels_what_it_has_made(tmp_path: Path) -> None:
    sleepy: list[Step] = [Sleep(timedelta(hours=1)), Say("late")]
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], sleepy)
    job = bench.submit().job

    def is_waiting(event: object) -> bool:
        return isinstance(event, ToolUseEvent)

    done = bench.execute(job.id, stop_when=is_waiting)

    assert done.status is JobStatus.CANCELLED
    assert all(one.status is JobStatus.CANCELLED for one in children(bench, job))


def test_cancelling_reaches_a_child_that_runs(tmp_path: Path) -> None:
    sleepy: list[Step] = [Say("begun"), Sleep(timedelta(hours=1)), Say("late")]
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], sleepy)
    job = bench.submit().job

    async def run() -> None:
        stopper = Stopper()

        async def stop_once_the_child_runs() -> None:
            while not any(one.status is JobStatus.RUNNING for one in children(bench, job)):  # noqa: ASYNC110 (a row is waited for)
                await anyio.sleep(0.01)
            stopper.stop(ExitReason.CANCELLED)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_once_the_child_runs)
            await run_job(
                job.id, bench.agent, bench.context, on_event=lambda event: None, stopper=stopper
            )

    anyio.run(run)

    done, (child,) = bench.job(job.id), children(bench, job)
    assert (done.status, child.status) == (JobStatus.CANCELLED, JobStatus.CANCELLED)


def test_a_child_that_another_worker_has_is_waited_for(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING)
    bench.context = replace(bench.context, fleet_limit=2)
    job = bench.submit().job
    cut_off_in_the_call(bench, job)
    (child,) = children(bench, job)
    start = StartExecution(job_id=child.id, worker="worker-other000", at=bench.clock.now())  # type: ignore[arg-type]  # a NewType, given as text
    anyio.run(bench.store.apply, [start])

    async def run() -> None:
        async def the_other_worker() -> None:
            taken = bench.job(child.id)
            await run_taken_job(
                taken, bench.context.agents["helper"], bench.context, on_event=lambda event: None
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(the_other_worker)
            await run_job(job.id, bench.agent, bench.context, on_event=lambda event: None)

    anyio.run(run)

    assert (bench.job(job.id).status, bench.job(child.id).epoch) == (JobStatus.COMPLETED, 1)


def test_a_child_is_not_begun_once_somebody_wants_its_parent_to_end(tmp_path: Path) -> None:
    """The worker was killed after the wish: the child may be taken before anybody has seen to the parent."""
    bench = bench_of(tmp_path, [*ask("helper"), Say("done")], HELPING)
    job = bench.submit().job
    cut_off_in_the_call(bench, job)
    (child,) = children(bench, job)
    at = bench.clock.now()
    start = StartExecution(job_id=job.id, worker="worker-other000", at=at)  # type: ignore[arg-type]  # a NewType, given as text
    anyio.run(bench.store.apply, [start])
    anyio.run(bench.store.apply, [CancelJob(job_id=job.id, at=at)])
    bench.context = replace(bench.context, fleet_limit=2)

    ended = bench.execute(child.id)

    assert (ended.status, ended.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    assert not any(isinstance(event, AssistantEvent) for event in bench.journal(child.id))


def test_cancelling_a_job_that_waits_cancels_what_waits_below_it(tmp_path: Path) -> None:
    bench = bench_of(
        tmp_path, [*ask("helper"), Say("done")], [*ask("boss"), Say("?")], Limits(depth=1)
    )
    job = bench.run()
    assert job.status is JobStatus.SUSPENDED

    anyio.run(cancel_below, job.id, bench.context)

    assert [one.status for one in children(bench, job)] == [JobStatus.CANCELLED]
