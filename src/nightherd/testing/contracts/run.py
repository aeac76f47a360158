"""What every state store must do for workflow runs; see `state_contract` for how to run checks.

How runs wait, and what ends their waiting, is in `run_waits_contract`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from nightherd.model.change import Why
from nightherd.model.inbox.item import ItemKind, ItemStatus
from nightherd.model.jobs.job import JobStatus
from nightherd.model.limits.limits import Limits
from nightherd.model.sessions.session import SessionStatus
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    CancelRun,
    MergeScratch,
    RaiseRun,
)
from nightherd.model.workflows.conductor.run_records import trigger_from
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import RunQuery
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import (
    InputSpec,
    InputType,
    RunTrigger,
)
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.run_values import (
    CANCELLED,
    FAILURE,
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
    lose,
    nodes,
    run_id,
    start_run,
    workflow,
)

TWO = workflow(*in_turn(job("dig"), job("sow", prompt="after ${phases.dig.output}")))
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


async def do(state: OpenState, number: int | RunId, *phases: str, failed: bool = False) -> None:
    """A worker does the jobs of these phases, one after the other."""
    for name in phases:
        one = job_of(state.reader, number, name)
        ended = end(one, outcome=FAILURE, answer=None) if failed else end(one)
        await must_apply(state, begin(one), ended)


def statuses(state: OpenState, *numbers: int) -> list[str]:
    """The statuses of these runs."""
    return [found_run(state.reader, number).status.value for number in numbers]


# -- starting ----------------------------------------------------------------------------------------


async def check_run_reads_back_whole_and_has_its_first_jobs(state: OpenState) -> None:
    trigger = RunTrigger(id="issue/7", actor="ada", repo="owner/field", issue_number=7)
    definition = workflow(*TWO.phases, inputs={"depth": InputSpec(type=InputType.NUMBER)})
    change = start_run(1, definition, inputs={"depth": 3}, trigger=trigger)

    applied = await must_apply(state, change)

    run = replace(
        change.run,
        status=RunStatus.RUNNING,
        current_phase="dig",
        definition_hash=change.pinned.hash,
        number=1,
    )
    assert applied.run_id == run.id
    assert found_run(state.reader, 1) == run
    assert state.reader.find_pinned(run.definition_hash) == change.pinned
    context = state.reader.find_run_context(run.id)
    assert context == change.context
    assert context.context["inputs"] == {"depth": 3}
    assert trigger_from(context.context["trigger"]) == trigger
    (node,) = state.reader.nodes_of_run(run.id)
    assert (node.id, node.path, node.kind) == (f"{run.id}/dig", "dig", NodeKind.JOB)
    dig = job_of(state.reader, 1, "dig")
    assert (dig.id, dig.node_id, dig.status) == (node.job_id, node.id, JobStatus.PENDING)
    assert (dig.agent, dig.trigger_id) == ("grazer", "issue/7")
    assert dig.session_id is not None
    session = state.reader.find_session(dig.session_id)
    assert session is not None
    assert session.status is SessionStatus.CREATED
    assert state.reader.find_node(node.id) == node


async def check_what_no_run_has_is_none(state: OpenState) -> None:
    reader = state.reader
    assert reader.find_run(run_id(1)) is None
    assert reader.find_pinned("") is None
    assert reader.find_run_context(run_id(1)) is None
    assert reader.find_run_scratch(run_id(1)) is None
    assert reader.find_node("x") is None
    assert reader.find_node_texts("x") is None
    lists = (
        reader.list_runs(RunQuery()),
        reader.run_ids("run-", 5),
        reader.runs_of_parent(run_id(1)),
        reader.nodes_of_run(run_id(1)),
        reader.jobs_of_run(run_id(1)),
        reader.items_of_run(run_id(1)),
        reader.events_of_run(run_id(1)),
        reader.runs_to_advance(instant(9), 5),
        reader.list_workflow_overrides(),
    )
    assert all(not one for one in lists)
    assert dict(reader.count_open_runs()) == {}
    assert reader.used_in_run(run_id(1)).spawns == 0
    for change in (
        CancelRun(run_id=run_id(1), at=instant(1)),
        AdvanceRun(run_id=run_id(1), at=instant(1)),
        MergeScratch(run_id=run_id(1), at=instant(1), values={}),
        RaiseRun(run_id=run_id(1), at=instant(1), limits={}),
    ):
        assert (await must_refuse(state, change)).why is Why.MISSING


async def check_end_of_a_phase_begins_the_next_and_ends_the_run(state: OpenState) -> None:
    await must_apply(state, start_run(1, replace(TWO, limits=Limits(duration=timedelta(hours=1)))))
    dig = job_of(state.reader, 1, "dig")

    await must_apply(state, begin(dig))
    assert nodes(state.reader, 1) == {"dig": "running"}
    await must_apply(state, end(dig, answer="a hole"))
    assert nodes(state.reader, 1) == {"dig": "succeeded", "sow": "waiting"}
    sow = job_of(state.reader, 1, "sow")
    texts = state.reader.find_texts(sow.id)
    assert texts is not None
    assert texts.prompt == "after a hole"
    await must_apply(state, begin(sow), end(sow, 5))

    run = found_run(state.reader, 1)
    assert (run.status, run.current_phase, run.error) == (RunStatus.SUCCEEDED, "sow", None)
    assert (run.finished_at, run.cost_microusd) == (instant(5), 2 * PRICE)
    assert run.worked_ms == (1 + 4) * 60_000
    assert not state.reader.items_of_run(run.id)


async def check_failed_phase_skips_the_rest_and_a_person_is_asked(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO))

    await do(state, 1, "dig", failed=True)

    run = found_run(state.reader, 1)
    assert run.status is RunStatus.FAILED
    assert "no grass" in (run.error or "")
    assert nodes(state.reader, 1) == {"dig": "failed", "sow": "skipped"}
    (item,) = state.reader.items_of_run(run.id)
    assert (item.kind, item.subject, item.node_id) == (ItemKind.FAILURE, run.id, None)
    # The phase's own job asks nobody: its run does.
    assert not state.reader.items_of_job(job_of(state.reader, 1, "dig").id)


async def check_failure_that_speaks_of_a_rejection_is_asked_about(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(job("push"))))
    push = job_of(state.reader, 1, "push")

    await must_apply(
        state, begin(push), end(push, outcome=replace(FAILURE, error="rejected by remote: main"))
    )

    (item,) = state.reader.items_of_run(run_id(1))
    assert (item.kind, item.is_pending) == (ItemKind.FAILURE, True)


async def check_answer_that_does_not_match_its_schema_is_tried_again(state: OpenState) -> None:
    definition = workflow(job("dig", output=SCHEMA, retries=1), job("sow", "dig"))
    await must_apply(state, start_run(1, definition))
    first = job_of(state.reader, 1, "dig")

    await must_apply(state, begin(first), end(first, answer='{"ok": "yes"}'))

    assert nodes(state.reader, 1) == {"dig": "failed", "dig#2": "waiting"}
    second = job_of(state.reader, 1, "dig#2")
    texts = state.reader.find_texts(second.id)
    assert texts is not None
    assert "does not match its schema" in texts.prompt
    await must_apply(state, begin(second), end(second, answer='```json\n{"ok": true}\n```'))
    assert nodes(state.reader, 1)["sow"] == "waiting"


async def check_run_that_cannot_go_on_leaves_nothing_behind(state: OpenState) -> None:
    """A definition that no check has seen: the run fails, and nothing of it goes on."""
    broken = {"type": "array", "items": 5}
    await must_apply(
        state, start_run(1, workflow(job("dig", output=broken), job("mow"), gate("ask")))
    )
    dig, mow = (job_of(state.reader, 1, name) for name in ("dig", "mow"))

    await must_apply(state, begin(dig), begin(mow), end(dig, answer="[1]"))

    run = found_run(state.reader, 1)
    assert run.status is RunStatus.FAILED
    assert "cannot go on" in (run.error or "")
    ended = state.reader.find_job(dig.id)
    assert ended is not None
    assert ended.status is JobStatus.COMPLETED
    assert set(nodes(state.reader, 1).values()) == {"cancelled"}
    assert not gate_of(state.reader, 1, "ask").is_pending
    left = job_of(state.reader, 1, "mow")
    assert left.cancel_requested_at is not None
    await must_apply(state, end(mow, outcome=CANCELLED))
    assert found_run(state.reader, 1) == run


async def check_same_request_starts_one_run(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO, dedupe_key="delivery"))

    again = await must_refuse(state, start_run(2, TWO, dedupe_key="delivery"))
    taken = await must_refuse(state, start_run(1, TWO))

    assert (again.why, again.run_id) == (Why.DUPLICATE, run_id(1))
    assert taken.why is Why.ID_TAKEN
    assert [run.id for run in state.reader.list_runs(RunQuery())] == [run_id(1)]
    await do(state, 1, "dig", "sow")
    late = await must_refuse(state, start_run(3, TWO, dedupe_key="delivery"))
    assert (late.why, late.run_id) == (Why.DUPLICATE, run_id(1))


async def check_runs_of_one_definition_share_its_pinned_text(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO), start_run(2, TWO))

    hashes = {run.definition_hash for run in state.reader.list_runs(RunQuery())}
    assert len(hashes) == 1


# -- cancelling ------------------------------------------------------------------------------------------


async def check_cancelled_run_ends_when_its_last_job_has(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(job("dig"), job("mow"), job("sow", "dig mow"))))
    dig = job_of(state.reader, 1, "dig")
    await must_apply(state, begin(dig))
    cancel = CancelRun(run_id=run_id(1), at=instant(2), reason="by ada")

    await must_apply(state, cancel)
    await must_apply(state, cancel)

    assert statuses(state, 1) == ["running"]
    assert nodes(state.reader, 1) == {"dig": "running", "mow": "cancelled"}
    late = await must_refuse(state, end(dig, 3))
    assert late.why is Why.CANCELLED
    await must_apply(state, end(dig, 3, outcome=CANCELLED))
    assert nodes(state.reader, 1) == {"dig": "cancelled", "mow": "cancelled"}
    run = found_run(state.reader, 1)
    assert (run.status, run.error, run.finished_at) == (RunStatus.CANCELLED, "by ada", instant(3))
    assert not state.reader.items_of_run(run.id)
    assert (await must_refuse(state, cancel)).why is Why.STATUS
    assert found_run(state.reader, 1) == run
    assert (await must_apply(state, AdvanceRun(run_id=run.id, at=instant(9)))).rows == ()


async def check_cancelled_paused_run_takes_its_questions_with_it(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(gate("ask"), job("dig", "ask"))))
    item = gate_of(state.reader, 1, "ask")
    assert statuses(state, 1) == ["paused"]

    await must_apply(state, CancelRun(run_id=run_id(1), at=instant(1)))

    assert statuses(state, 1) == ["cancelled"]
    closed = state.reader.find_item(item.id)
    assert closed is not None
    assert closed.status is ItemStatus.CANCELLED
    late = await must_refuse(state, answer(item))
    assert late.why is Why.DECIDED
    assert nodes(state.reader, 1) == {"ask": "cancelled"}


# -- lists -----------------------------------------------------------------------------------------------


async def check_runs_are_listed_newest_first(state: OpenState) -> None:
    for number in (1, 2, 3, 4):
        name = "mow" if number == 2 else "graze"
        await must_apply(state, start_run(number, workflow(job("dig"), name=name)))
    await do(state, 3, "dig")

    def listed(**query: Any) -> list[int]:
        return [run.number for run in state.reader.list_runs(RunQuery(**query))]

    assert listed() == [4, 3, 2, 1]
    assert listed(limit=2) == [4, 3]
    assert listed(before=3) == [2, 1]
    assert listed(workflow="graze") == [4, 3, 1]
    assert listed(workflow="graze", before=4, limit=1) == [3]
    assert listed(status=RunStatus.RUNNING) == [4, 2, 1]
    assert listed(status=RunStatus.RUNNING, workflow="graze", before=4) == [1]
    assert listed(status=RunStatus.PAUSED) == []
    assert list(state.reader.run_ids(run_id(1)[:-1], 2)) == [run_id(1), run_id(2)]
    assert list(state.reader.run_ids(run_id(3), 5)) == [run_id(3)]
    assert list(state.reader.run_ids("run-9", 5)) == []
    assert dict(state.reader.count_open_runs()) == {
        ("graze", RunStatus.RUNNING): 2,
        ("mow", RunStatus.RUNNING): 1,
    }


async def check_lost_executions_are_counted_until_a_phase_succeeds(state: OpenState) -> None:
    await must_apply(state, start_run(1, TWO))
    dig = job_of(state.reader, 1, "dig")
    await must_apply(state, begin(dig), lose(dig))
    dig = job_of(state.reader, 1, "dig")
    await must_apply(state, begin(dig), lose(dig, is_planned=True))

    assert found_run(state.reader, 1).restart_count == 1
    assert nodes(state.reader, 1) == {"dig": "waiting"}
    await do(state, 1, "dig")
    assert found_run(state.reader, 1).restart_count == 0
    assert statuses(state, 1) == ["running"]


async def check_run_whose_jobs_are_always_lost_fails(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(job("dig", retries=3))))

    for _ in range(300):
        waiting = [one for one in jobs_by_phase(state.reader, 1).values() if not one.is_terminal]
        for dig in waiting:
            await must_apply(state, begin(dig), lose(dig))

    run = found_run(state.reader, 1)
    assert run.status is RunStatus.FAILED
    assert run.error == "its jobs were lost 101 times without any phase succeeding"
    assert nodes(state.reader, 1) == {"dig": "failed", "dig#2": "cancelled"}


RUN_CHECKS = checks_in(globals())
"""Every check of this module."""
