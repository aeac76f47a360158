"""What every state store must do for runs beside each other: concurrency, switches, scratch, retries and forks."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.errors import RefusedError
from nightherd.model.change import Why
from nightherd.model.inbox.item import Verdict
from nightherd.model.workflows.conductor.changes import (
    CancelRun,
    MergeScratch,
    OverrideWorkflow,
    RaiseRun,
    StartRun,
)
from nightherd.model.workflows.conductor.decisions import REPLACED
from nightherd.model.workflows.conductor.keeping import kept_nodes
from nightherd.model.workflows.definition import ForEach, Loop, OnFailure, WorkflowDefinition
from nightherd.model.workflows.rows import SCRATCH_LIMIT
from nightherd.model.workflows.triggers import (
    Concurrency,
    InputSpec,
    InputType,
    WhenBusy,
)
from nightherd.testing.contracts.run import TWO, do, statuses
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
    in_turn,
    instant,
    job,
    job_of,
    jobs_by_phase,
    nodes,
    run_id,
    start_run,
    workflow,
)
from nightherd.testing.state_values import submit

# -- concurrency ---------------------------------------------------------------------------------------


def limited(when_busy: WhenBusy, max_runs: int = 1) -> WorkflowDefinition:
    """A workflow with so many runs for each field."""
    terms = Concurrency(max_runs=max_runs, key="${inputs.field}", when_busy=when_busy)
    return workflow(job("dig"), inputs={"field": InputSpec(required=True)}, concurrency=terms)


def in_field(number: int, when_busy: WhenBusy, field: str = "a", max_runs: int = 1) -> StartRun:
    """Start run `number` in a field."""
    return start_run(number, limited(when_busy, max_runs), inputs={"field": field})


async def check_queued_runs_begin_in_order_one_for_each_that_ends(state: OpenState) -> None:
    queue = WhenBusy.QUEUE
    for number in (1, 2, 3, 4):
        await must_apply(state, in_field(number, queue, max_runs=2))
    await must_apply(state, in_field(5, queue, "b", max_runs=2))

    assert statuses(state, 1, 2, 3, 4, 5) == ["running", "running", "queued", "queued", "running"]
    assert jobs_by_phase(state.reader, 3) == {}
    await do(state, 2, "dig")
    assert statuses(state, 1, 2, 3, 4) == ["running", "succeeded", "running", "queued"]
    await do(state, 3, "dig")
    await do(state, 1, "dig", failed=True)
    assert statuses(state, 1, 3, 4) == ["failed", "succeeded", "running"]
    assert list(jobs_by_phase(state.reader, 4)) == ["dig"]


async def check_cancelled_queued_run_makes_no_room(state: OpenState) -> None:
    for number in (1, 2, 3):
        await must_apply(state, in_field(number, WhenBusy.QUEUE))

    await must_apply(state, CancelRun(run_id=run_id(2), at=instant(1), reason="by ada"))

    assert statuses(state, 1, 2, 3) == ["running", "cancelled", "queued"]
    assert found_run(state.reader, 2).error == "by ada"
    await do(state, 1, "dig")
    assert statuses(state, 3) == ["running"]


async def check_busy_workflow_drops_what_it_cannot_run(state: OpenState) -> None:
    await must_apply(state, in_field(1, WhenBusy.DROP))

    dropped = await must_refuse(state, in_field(2, WhenBusy.DROP))
    await must_apply(state, in_field(3, WhenBusy.DROP, "b"))

    assert (dropped.why, dropped.run_id) == (Why.FULL, run_id(1))
    assert state.reader.find_run(run_id(2)) is None
    await do(state, 1, "dig")
    await must_apply(state, in_field(2, WhenBusy.DROP))


async def check_newer_run_takes_the_place_of_an_older_one(state: OpenState) -> None:
    await must_apply(state, in_field(1, WhenBusy.REPLACE))
    dig = job_of(state.reader, 1, "dig")
    await must_apply(state, begin(dig))

    await must_apply(state, in_field(2, WhenBusy.REPLACE), in_field(3, WhenBusy.REPLACE))

    # The first still has a job that its worker is asked to stop; only the newest waits for that.
    assert statuses(state, 1, 2, 3) == ["running", "cancelled", "queued"]
    assert found_run(state.reader, 1).stopping == REPLACED
    marked = state.reader.find_job(dig.id)
    assert marked is not None
    assert marked.cancel_requested_at is not None
    await must_apply(state, end(dig, outcome=CANCELLED))
    assert statuses(state, 1, 3) == ["cancelled", "running"]
    assert found_run(state.reader, 1).error == REPLACED


# -- scratch, switches and limits ------------------------------------------------------------------------


async def check_scratch_is_merged_key_by_key_and_bounded(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO))

    def merge(**values: object) -> MergeScratch:
        return MergeScratch(run_id=run_id(1), at=instant(1), values=values)

    await must_apply(state, merge(a=1, b={"x": "ä'\""}), merge(a=2, c=[1]), merge(b=None))
    kept = state.reader.find_run_scratch(run_id(1))
    assert kept is not None
    assert kept.scratch == {"a": 2, "c": [1]}

    refused = await must_refuse(state, merge(long="x" * SCRATCH_LIMIT))
    assert refused.why is Why.TOO_LARGE
    assert f"{SCRATCH_LIMIT:,}" in refused.message
    assert state.reader.find_run_scratch(run_id(1)) == kept
    await do(state, 1, "dig", "sow")
    assert (await must_refuse(state, merge(a=3))).why is Why.STATUS


async def check_places_of_loops_never_make_the_scratch_too_large(state: OpenState) -> None:
    """What a run notes by itself is bounded too: else no job of it could end."""
    name = "a" * 60
    loop = Loop(max_iterations=1, until="true")
    each = ForEach(items="inputs.items", max_parallel=1_000)
    definition = workflow(
        job(name, for_each=each, loop=loop),
        inputs={"items": InputSpec(type=InputType.LIST, required=True)},
    )
    values = {"items": list(range(700))}
    await must_apply(state, start_run(1, definition, inputs=values))
    room = MergeScratch(
        run_id=run_id(1), at=instant(1), values={"mine": "x" * (SCRATCH_LIMIT - 100)}
    )
    await must_apply(state, room)

    for one in list(jobs_by_phase(state.reader, 1).values()):
        await must_apply(state, begin(one), end(one))

    assert statuses(state, 1) == ["succeeded"]
    scratch = state.reader.find_run_scratch(run_id(1))
    assert scratch is not None
    assert len(scratch.scratch["mine"]) == SCRATCH_LIMIT - 100


async def check_switched_off_workflow_starts_nothing_until_its_file_counts(
    state: OpenState,
) -> None:
    off = OverrideWorkflow(name="graze", at=instant(0), by="ada", enabled=False)
    await must_apply(state, start_run(1, TWO), off)

    refused = await must_refuse(state, start_run(2, TWO))

    assert refused.why is Why.SWITCHED_OFF
    assert "ada" in refused.message
    (kept,) = state.reader.list_workflow_overrides()
    assert (kept.name, kept.enabled, kept.updated_by) == ("graze", False, "ada")
    await do(state, 1, "dig", "sow")
    assert statuses(state, 1) == ["succeeded"]
    await must_apply(state, start_run(3, workflow(job("dig"), name="mow")))
    await must_apply(state, replace(off, enabled=None))
    await must_apply(state, replace(off, enabled=None))
    assert not state.reader.list_workflow_overrides()
    await must_apply(state, start_run(2, TWO))


async def check_refused_run_undoes_the_answer_that_started_it(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO))
    await do(state, 1, "dig", failed=True)
    (item,) = state.reader.items_of_run(run_id(1))
    off = OverrideWorkflow(name="graze", at=instant(0), by="ada", enabled=False)
    await must_apply(state, off)
    retry = replace(answer(item, Verdict.RETRY), run=start_run(2, TWO))

    message = ""
    try:
        await state.writer.apply([retry])
    except RefusedError as error:
        message = str(error)

    assert "switched off" in message
    assert state.reader.find_item(item.id) == item
    assert not state.reader.list_answers(item.id)
    await must_apply(state, replace(off, enabled=None), retry)
    assert statuses(state, 2) == ["running"]


async def check_what_a_run_used_is_counted_and_raised_limits_are_kept(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO), start_run(2, TWO))
    await do(state, 1, "dig")
    child = submit(7)
    of_phase = replace(child.job, parent_job_id=job_of(state.reader, 1, "sow").id)
    await must_apply(state, replace(child, job=of_phase))
    used = state.reader.used_in_run(run_id(1))
    assert (used.spend, used.turns, used.spawns) == (PRICE, 1, 1)
    assert state.reader.used_in_run(run_id(2)).spend == 0

    await must_apply(state, RaiseRun(run_id=run_id(1), at=instant(1), limits={"turns": 7}))
    await must_apply(state, RaiseRun(run_id=run_id(1), at=instant(1), limits={"spend": 8}))

    assert found_run(state.reader, 1).limits == {"turns": 7, "spend": 8}


# -- doing it again --------------------------------------------------------------------------------------


async def again(
    state: OpenState,
    number: int,
    of: int,
    definition: WorkflowDefinition,
    *,
    without: str | None = None,
) -> None:
    """Start run `number` that keeps what run `of` has done."""
    before = state.reader.nodes_of_run(run_id(of))
    texts = {one.id: state.reader.find_node_texts(one.id) for one in before}
    known = {key: value for key, value in texts.items() if value is not None}
    kept, kept_texts = kept_nodes(
        run_id(number), definition, before, known, instant(5), without=without
    )
    change = replace(start_run(number, definition), kept=kept, kept_texts=kept_texts)
    context = state.reader.find_run_context(run_id(of))
    assert context is not None
    change = replace(change, context=replace(context, run_id=run_id(number)))
    await must_apply(state, change)


async def check_retried_run_does_only_what_is_not_done(state: OpenState) -> None:
    definition = workflow(*in_turn(job("dig"), gate("ask"), job("sow"), job("mow")))
    await must_apply(state, start_run(1, definition))
    await do(state, 1, "dig")
    await must_apply(state, answer(gate_of(state.reader, 1, "ask"), text="fine"))
    await do(state, 1, "sow", failed=True)

    await again(state, 2, 1, definition)

    assert nodes(state.reader, 2) == {"dig": "succeeded", "ask": "succeeded", "sow": "waiting"}
    assert {one.kept_from for one in state.reader.nodes_of_run(run_id(2))} == {run_id(1), None}
    assert list(jobs_by_phase(state.reader, 2)) == ["sow"]
    assert not state.reader.items_of_run(run_id(2))
    texts = state.reader.find_node_texts(f"{run_id(2)}/ask")
    assert texts is not None
    assert texts.content["output"]["comment"] == "fine"
    await do(state, 2, "sow", "mow")
    assert statuses(state, 2) == ["succeeded"]


async def check_cancelled_queued_run_has_no_open_node(state: OpenState) -> None:
    each = ForEach(items="inputs.items")
    definition = workflow(
        job("dig", for_each=each),
        inputs={"items": InputSpec(type=InputType.LIST, required=True)},
        concurrency=Concurrency(max_runs=1),
    )
    await must_apply(state, start_run(1, definition, inputs={"items": ["a", "b"]}))
    await do(state, 1, "dig[0]")
    await do(state, 1, "dig[1]", failed=True)
    await must_apply(state, start_run(2, definition, inputs={"items": ["c"]}))
    await again(state, 3, 1, definition)
    assert statuses(state, 3) == ["queued"]

    await must_apply(state, CancelRun(run_id=run_id(3), at=instant(4)))

    assert nodes(state.reader, 3) == {"dig": "cancelled", "dig[0]": "succeeded"}
    assert statuses(state, 2, 3) == ["running", "cancelled"]


async def check_rejected_gate_is_asked_again_by_a_retried_run(state: OpenState) -> None:
    definition = workflow(*in_turn(job("dig"), gate("ask"), job("sow")))
    await must_apply(state, start_run(1, definition))
    await do(state, 1, "dig")
    await must_apply(state, answer(gate_of(state.reader, 1, "ask"), Verdict.REJECT, text="no"))
    assert found_run(state.reader, 1).error == "ask failed: rejected by ada: no"

    await again(state, 2, 1, definition)

    assert nodes(state.reader, 2) == {"dig": "succeeded", "ask": "paused"}
    item = gate_of(state.reader, 2, "ask")
    assert item.is_pending
    assert jobs_by_phase(state.reader, 2) == {}


async def check_forked_run_does_a_phase_and_what_depends_on_it(state: OpenState) -> None:
    tolerated = job("mow", on_failure=OnFailure.CONTINUE)
    definition = workflow(job("dig"), tolerated, job("sow", "dig"), job("eat", "sow mow"))
    await must_apply(state, start_run(1, definition))
    await do(state, 1, "mow", failed=True)
    await do(state, 1, "dig", "sow", "eat")
    assert statuses(state, 1) == ["succeeded"]

    await again(state, 2, 1, definition, without="sow")

    assert nodes(state.reader, 2) == {"dig": "succeeded", "mow": "failed", "sow": "waiting"}


async def check_items_that_are_done_are_kept(state: OpenState) -> None:
    each = ForEach(items="inputs.items", max_parallel=2)
    definition = workflow(
        job("dig", for_each=each, prompt="${item}"),
        inputs={"items": InputSpec(type=InputType.LIST, required=True)},
    )
    await must_apply(state, start_run(1, definition, inputs={"items": ["a", "b", "c"]}))
    assert list(jobs_by_phase(state.reader, 1)) == ["dig[0]", "dig[1]"]
    await do(state, 1, "dig[0]")
    await do(state, 1, "dig[1]", failed=True)
    await do(state, 1, "dig[2]")
    assert statuses(state, 1) == ["failed"]

    await again(state, 2, 1, definition)

    assert list(jobs_by_phase(state.reader, 2)) == ["dig[1]"]
    await do(state, 2, "dig[1]")
    assert statuses(state, 2) == ["succeeded"]


RUN_RULES_CHECKS = checks_in(globals())
"""Every check of this module."""
