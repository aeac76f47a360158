"""What every state store must do for runs of workflows inside other runs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from nightherd.model.change import Why
from nightherd.model.ids import WorkerId
from nightherd.model.inbox.item import ItemStatus, Verdict
from nightherd.model.jobs.changes import ClaimJob
from nightherd.model.limits.limits import Limits
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    CancelRun,
    OverrideWorkflow,
    StartRun,
)
from nightherd.model.workflows.conductor.phase_jobs import derived
from nightherd.model.workflows.definition import (
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import Concurrency, WhenBusy
from nightherd.testing.contracts.run import TWO, do, statuses
from nightherd.testing.contracts.run_waits import HOUR, prompt_of
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.run_values import (
    CANCELLED,
    PRICE,
    answer,
    begin,
    end,
    found_run,
    gate,
    gate_of,
    instant,
    job,
    job_of,
    jobs_by_phase,
    nodes,
    phase,
    run_id,
    start_run,
    workflow,
)

# -- runs in runs ----------------------------------------------------------------------------------------


def parent_of(inner: WorkflowDefinition, **more: Any) -> WorkflowDefinition:
    """A workflow whose first phase is a run of another."""
    action = WorkflowAction(workflow=inner.name, definition=inner)
    sub = phase("sub", action, **more)
    later = job("eat", "sub", prompt="${phases.sub.output}")
    return workflow(sub, later, name="farm")


def child_of(state: OpenState, number: int, place: int = 0) -> WorkflowRun:
    """The run that run `number` has started."""
    return state.reader.runs_of_parent(run_id(number))[place]


async def check_run_in_a_run_ends_the_phase_that_started_it(state: OpenState) -> None:
    await must_apply(state, start_run(1, parent_of(TWO)))
    child = child_of(state, 1)

    assert (child.root, child.parent_node_id) == (run_id(1), f"{run_id(1)}/sub")
    assert child.status is RunStatus.RUNNING
    assert nodes(state.reader, 1) == {"sub": "running"}
    assert child.trigger_id == found_run(state.reader, 1).trigger_id
    await do(state, child.id, "dig", "sow")

    assert nodes(state.reader, 1) == {"sub": "succeeded", "eat": "waiting"}
    assert '"sow": "Grazed."' in prompt_of(state, 1, "eat")
    used = state.reader.used_in_run(run_id(1))
    assert (used.spend, used.turns, used.spawns) == (2 * PRICE, 2, 0)


async def check_run_above_is_paused_while_the_one_below_is(state: OpenState) -> None:
    await must_apply(state, start_run(1, parent_of(workflow(gate("ask")))))
    child = child_of(state, 1)
    assert statuses(state, 1) == ["paused"]
    assert nodes(state.reader, 1) == {"sub": "paused"}

    await must_apply(state, answer(gate_of(state.reader, child.id, "ask"), Verdict.REJECT))

    assert nodes(state.reader, 1) == {"sub": "failed", "eat": "skipped"}
    assert statuses(state, 1) == ["failed"]
    # Only the run that a person started asks about its failure.
    assert not [one for one in state.reader.items_of_run(child.id) if one.is_pending]


async def check_cancelled_run_cancels_the_runs_below_it(state: OpenState) -> None:
    inner = parent_of(workflow(gate("ask"), job("dig"), name="deep"))
    await must_apply(state, start_run(1, parent_of(inner)))
    middle = child_of(state, 1)
    (deep,) = state.reader.runs_of_parent(middle.id)
    dig = job_of(state.reader, deep.id, "dig")
    await must_apply(state, begin(dig))

    await must_apply(state, CancelRun(run_id=run_id(1), at=instant(2), reason="by ada"))
    assert gate_of(state.reader, deep.id, "ask").status is ItemStatus.CANCELLED
    assert statuses(state, 1) == ["running"]
    await must_apply(state, end(dig, 3, outcome=CANCELLED))

    runs = [found_run(state.reader, one) for one in (run_id(1), middle.id, deep.id)]
    assert [(run.status, run.error) for run in runs] == [(RunStatus.CANCELLED, "by ada")] * 3


async def check_sub_workflow_waits_for_its_place_and_is_never_dropped(state: OpenState) -> None:
    terms = Concurrency(max_runs=1, when_busy=WhenBusy.DROP)
    inner = workflow(job("dig"), concurrency=terms, name="inner")
    off = OverrideWorkflow(name="inner", at=instant(0), by="ada", enabled=False)
    await must_apply(state, start_run(1, parent_of(inner)), off, start_run(2, parent_of(inner)))
    first, second = child_of(state, 1), child_of(state, 2)
    assert (first.status, second.status) == (RunStatus.RUNNING, RunStatus.QUEUED)

    await do(state, first.id, "dig")

    assert found_run(state.reader, second.id).status is RunStatus.RUNNING
    assert nodes(state.reader, 2) == {"sub": "running"}


async def check_sub_workflow_that_takes_too_long_fails(state: OpenState) -> None:
    await must_apply(state, start_run(1, parent_of(workflow(gate("ask")), timeout=HOUR)))
    child = child_of(state, 1)

    await must_apply(state, AdvanceRun(run_id=run_id(1), at=instant(61)))

    assert found_run(state.reader, child.id).status is RunStatus.FAILED
    assert nodes(state.reader, 1) == {"sub": "failed", "eat": "skipped"}
    assert "timed out" in (found_run(state.reader, 1).error or "")


async def check_queued_sub_workflow_that_takes_too_long_fails_too(state: OpenState) -> None:
    terms = Concurrency(max_runs=1)
    inner = workflow(job("dig"), concurrency=terms, name="inner")
    await must_apply(state, start_run(1, inner), start_run(2, parent_of(inner, timeout=HOUR)))
    await must_apply(state, start_run(3, inner))
    assert child_of(state, 2).status is RunStatus.QUEUED

    await must_apply(state, AdvanceRun(run_id=run_id(2), at=instant(61)))

    assert nodes(state.reader, 2) == {"sub": "failed", "eat": "skipped"}
    assert statuses(state, 1, 2, 3) == ["running", "failed", "queued"]


async def check_limits_of_a_run_are_those_of_all_jobs_in_its_tree(state: OpenState) -> None:
    inner = replace(TWO, limits=Limits(turns=5))
    definition = replace(parent_of(inner), limits=Limits(turns=9, duration=HOUR))
    await must_apply(state, start_run(1, definition))
    child = child_of(state, 1)

    texts = state.reader.find_texts(job_of(state.reader, child.id, "dig").id)
    assert texts is not None
    shared = [(str(one.job), one.limits) for one in texts.overrides.within]
    assert shared == [(run_id(1), {"turns": 9}), (child.id, {"turns": 5})]


async def check_ids_of_jobs_that_begin_together_are_never_the_same(state: OpenState) -> None:
    """Ids are made from the names of nodes; two names may give the same."""
    seen: dict[str, str] = {}
    names: tuple[str, str] | None = None
    number = 0
    while names is None:
        name = f"p{number}"
        text = derived(f"{run_id(1)}/{name}", 0)(6)
        names = (seen[text], name) if text in seen else None
        seen[text] = name
        number += 1

    await must_apply(state, start_run(1, workflow(*(job(name) for name in names))))

    assert len(jobs_by_phase(state.reader, 1)) == 2


async def check_paused_runs_need_nothing_until_they_are_answered(state: OpenState) -> None:
    changes: list[StartRun] = [start_run(n, workflow(gate("ask"))) for n in range(1, 41)]
    await must_apply(state, *changes)

    assert not state.reader.runs_to_advance(instant(10_000), 5)
    assert not state.reader.has_waiting_job(("grazer",))
    assert dict(state.reader.count_open_runs()) == {("graze", RunStatus.PAUSED): 40}
    await must_apply(state, answer(gate_of(state.reader, RunId(run_id(7)), "ask")))
    assert statuses(state, 7) == ["succeeded"]


async def check_worker_of_one_run_takes_jobs_of_its_tree_alone(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(job("dig"))))
    await must_apply(state, start_run(2, parent_of(workflow(job("dig")))))
    (inner,) = state.reader.runs_of_parent(run_id(2))
    (own,) = state.reader.jobs_of_run(inner.id)
    claim = ClaimJob(
        worker=WorkerId("worker-00000001"),
        at=instant(1),
        agents={own.agent: 9},
        repos={},
        run_id=run_id(2),
    )

    taken = await must_apply(state, claim)
    refused = await must_refuse(state, claim)

    assert taken.job is not None
    assert taken.job.id == own.id
    assert refused.why is Why.NOTHING


RUN_TREE_CHECKS = checks_in(globals())
"""Every check of this module."""
