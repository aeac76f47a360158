"""The doctor finds workflow runs that stand still, and columns that do not show what is so; rebuilding gives both again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import pytest

from engine.doctor.ward import Ward
from nightherd.db.connection import open_for_reading
from nightherd.model.change import Answer, Applied, Change
from nightherd.model.workflows.conductor.changes import CancelRun, MergeScratch, SendEvent
from nightherd.model.workflows.definition import ForEach, Loop, WorkflowAction, WorkflowDefinition
from nightherd.model.workflows.run import RunStatus
from nightherd.model.workflows.triggers import Concurrency, InputSpec, InputType, WhenBusy
from nightherd.state.fresh_ledger import begin_ledger
from nightherd.state.reader import SqliteReader
from nightherd.testing.run_values import (
    FAILURE,
    answer,
    begin,
    end,
    event,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    job_of,
    lose,
    nodes,
    phase,
    run_id,
    start_run,
    workflow,
)
from nightherd.wiring.stores import open_repair

TWO = workflow(*in_turn(job("dig"), job("sow")))
INNER = workflow(job("dig"), name="inner")
OUTER = workflow(phase("part", WorkflowAction(workflow="inner", definition=INNER)), name="outer")


def apply(ward: Ward, *changes: Change) -> Sequence[Answer]:
    """Make changes, all of which have to be possible."""

    async def work() -> Sequence[Answer]:
        async with open_repair(ward.root) as record:
            return await record.state.apply(changes)

    answers = anyio.run(work)
    assert all(isinstance(one, Applied) for one in answers), answers
    return answers


@contextmanager
def reading(ward: Ward) -> Iterator[SqliteReader]:
    reader = SqliteReader(ward.root)
    try:
        yield reader
    finally:
        reader.close()


def do(ward: Ward, number: int, name: str, *, fails: bool = False) -> None:
    """A worker does the job of a phase."""
    with reading(ward) as reader:
        one = job_of(reader, number, name)
    ended = end(one, outcome=FAILURE, answer=None) if fails else end(one)
    apply(ward, begin(one), ended)


def status(ward: Ward, number: int) -> RunStatus:
    with reading(ward) as reader:
        run = reader.find_run(run_id(number))
    assert run is not None
    return run.status


@pytest.fixture
def busy(ward: Ward) -> Ward:
    """A directory in which two phases come one after the other, and the second waits for its worker."""
    ward.run("hello")
    apply(ward, start_run(1, TWO))
    do(ward, 1, "dig")
    return ward


def test_runs_in_every_state_are_sound(busy: Ward) -> None:
    one = workflow(job("dig"), concurrency=Concurrency(max_runs=1, when_busy=WhenBusy.QUEUE))
    apply(busy, start_run(2, workflow(gate("push"))), start_run(3, OUTER), start_run(4, one))
    apply(busy, start_run(5, one), start_run(6, workflow(event("rain"))), start_run(7, TWO))
    apply(busy, CancelRun(run_id=run_id(7), at=instant(4)))
    with reading(busy) as reader:
        sow = job_of(reader, 1, "sow")
    apply(busy, begin(sow), lose(sow))

    assert busy.doctor().of("runs") == []
    assert busy.doctor("--verify").of("run-projections") == []


def test_a_run_whose_job_has_ended_behind_its_back_is_advanced(busy: Ward) -> None:
    before = busy.rows()["jobs"]
    busy.alter("UPDATE jobs SET status = 'completed' WHERE workflow_run_id = ?", run_id(1))
    assert before != busy.rows()["jobs"]

    (found,) = busy.doctor().of("runs")
    assert "does not continue: sow: job job-" in found["message"]
    assert "is completed" in found["message"]
    assert status(busy, 1) is RunStatus.RUNNING, "looking changes nothing"

    fixed = busy.doctor("--fix")

    assert [one["is_fixed"] for one in fixed.of("runs")] == [True]
    assert status(busy, 1) is RunStatus.SUCCEEDED
    assert busy.doctor().of("runs") == []


def test_a_gate_that_was_answered_behind_its_back_lets_the_run_continue(ward: Ward) -> None:
    ward.run("hello")
    apply(ward, start_run(1, workflow(*in_turn(gate("push"), job("dig")))))
    ward.alter("UPDATE inbox_items SET status = 'approved' WHERE workflow_run_id = ?", run_id(1))

    (found,) = ward.doctor("--fix").of("runs")

    assert "push: ask-" in found["message"]
    assert found["is_fixed"]
    with reading(ward) as reader:
        assert nodes(reader, 1) == {"push": "succeeded", "dig": "waiting"}


def test_a_run_above_one_that_is_over_is_advanced(ward: Ward) -> None:
    ward.run("hello")
    apply(ward, start_run(1, OUTER))
    ward.alter("UPDATE workflow_runs SET status = 'failed' WHERE parent_run_id = ?", run_id(1))

    (found,) = ward.doctor("--fix").of("runs")

    assert "is failed" in found["message"]
    assert status(ward, 1) is RunStatus.FAILED


def test_a_queued_run_with_nothing_before_it_is_begun(ward: Ward) -> None:
    one = workflow(job("dig"), concurrency=Concurrency(max_runs=1, when_busy=WhenBusy.QUEUE))
    ward.run("hello")
    apply(ward, start_run(1, one), start_run(2, one))
    ward.alter("UPDATE workflow_runs SET status = 'cancelled' WHERE id = ?", run_id(1))

    (found,) = ward.doctor("--fix").of("runs")

    assert "queued, and nothing runs before it" in found["message"]
    assert status(ward, 2) is RunStatus.RUNNING


def test_a_definition_that_cannot_be_read_is_reported_and_its_run_left_alone(busy: Ward) -> None:
    busy.alter("UPDATE workflow_definitions SET body = '{broken'")
    busy.alter("UPDATE jobs SET status = 'completed' WHERE workflow_run_id = ?", run_id(1))

    found = busy.doctor("--fix").of("runs")

    (one,) = found
    assert "the definition of workflow graze cannot be read" in one["message"]
    assert run_id(1) in one["message"]
    assert (one["is_fixed"], status(busy, 1)) == (False, RunStatus.RUNNING)


def test_a_missing_job_is_reported(busy: Ward) -> None:
    busy.alter("UPDATE workflow_nodes SET job_id = 'job-2026-03-01-gone00' WHERE ended_at IS NULL")

    (one,) = busy.doctor("--fix").of("runs")

    assert "cannot continue: sow: job job-2026-03-01-gone00 is missing" in one["message"]
    assert not one["is_fixed"]


def shown(ward: Ward) -> dict[str, tuple[object, ...]]:
    """What runs show of their nodes, context and scratch, and the gates."""
    opened = open_for_reading(ward.database)
    assert opened is not None
    try:
        columns = "id, node_statuses, phase_history, context, scratch"
        rows = opened.execute(f"SELECT {columns} FROM workflow_runs ORDER BY id")
        gates = opened.execute("SELECT * FROM workflow_approvals ORDER BY id")
        return {str(row[0]): tuple(row) for row in (*rows, *gates)}
    finally:
        opened.close()


@pytest.mark.parametrize(
    "change",
    [
        "node_statuses = '{}'",
        'node_statuses = \'{"dig":"failed","sow":"waiting"}\'',
        "phase_history = '[]'",
        "phase_history = 'no json'",
        "context = NULL",
        'scratch = \'{"note":"other"}\'',
    ],
)
def test_columns_that_show_something_else_are_written_again(busy: Ward, change: str) -> None:
    apply(busy, MergeScratch(run_id=run_id(1), at=instant(3), values={"note": "deep"}))
    before = shown(busy)
    busy.alter(f"UPDATE workflow_runs SET {change} WHERE id = ?", run_id(1))

    (found,) = busy.doctor().of("run-projections")
    assert change.partition(" ")[0] in found["message"]
    (fixed,) = busy.doctor("--fix").of("run-projections")

    assert fixed["is_fixed"]
    assert shown(busy) == before
    assert busy.doctor().of("run-projections") == []


def many(ward: Ward) -> None:
    """Runs with everything that a run can have."""
    ward.run("hello")
    loop = job("fix", loop=Loop(max_iterations=2))
    listed = workflow(
        job("each", for_each=ForEach(items="inputs.fields")),
        name="listed",
        inputs={"fields": InputSpec(type=InputType.LIST)},
    )
    rich: WorkflowDefinition = workflow(
        *in_turn(job("zero", retries=1), gate("ask"), event("rain"), loop, job("last")), name="rich"
    )
    apply(ward, start_run(1, rich), start_run(2, TWO), start_run(3, OUTER), start_run(4, rich))
    do(ward, 1, "zero", fails=True)
    do(ward, 1, "zero#2")
    with reading(ward) as reader:
        item = gate_of(reader, 1, "ask")
    apply(ward, answer(item))
    apply(ward, SendEvent(run_id=run_id(1), name="rain", key="k", at=instant(4), by="ada"))
    do(ward, 1, "fix[1]")
    apply(ward, MergeScratch(run_id=run_id(1), at=instant(5), values={"note": "deep"}))
    do(ward, 2, "dig", fails=True)
    apply(ward, CancelRun(run_id=run_id(4), at=instant(6)))
    apply(ward, start_run(5, listed, inputs={"fields": ["north", "south"]}))
    do(ward, 5, "each[1]")


def test_a_rebuilt_database_has_the_same_runs_nodes_and_columns(ward: Ward) -> None:
    many(ward)
    rows, columns = ward.rows(), shown(ward)
    assert rows["workflow_nodes"]
    assert rows["workflow_events"]
    ward.delete_database()

    rebuilt = ward.doctor("--rebuild")

    assert rebuilt.of("runs") == rebuilt.of("run-projections") == []
    again = ward.rows()
    for table in (name for name in rows if name.startswith("workflow_") or name == "inbox_items"):
        assert again[table] == rows[table], table
    assert shown(ward) == columns


def test_a_database_rebuilt_from_a_new_ledger_has_the_same_columns(ward: Ward) -> None:
    many(ward)
    rows, columns = ward.rows(), shown(ward)
    begin_ledger(ward.root, at=instant(60))
    ward.delete_database()

    rebuilt = ward.doctor("--rebuild")

    assert rebuilt.of("run-projections") == []
    assert ward.rows()["workflow_nodes"] == rows["workflow_nodes"]
    assert shown(ward) == columns
