"""The tables of runs as other programs read them: projections that agree with the nodes, and gates as approvals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from nightherd.db.connection import open_for_writing
from nightherd.model.change import Applied, Change
from nightherd.model.inbox.changes import ExpireItem
from nightherd.model.inbox.item import Verdict
from nightherd.model.workflows.conductor.changes import CancelRun, MergeScratch, OverrideWorkflow
from nightherd.model.workflows.definition import BlockAction, GateAction, GateKind, Loop
from nightherd.state.agreement import differences
from nightherd.state.directory import StateDirectory
from nightherd.state.reader import SqliteReader
from nightherd.testing.contracts.run import SCHEMA
from nightherd.testing.determinism import START
from nightherd.testing.run_values import (
    FAILURE,
    answer,
    begin,
    end,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    job_of,
    phase,
    run_id,
    start_run,
    workflow,
)
from state.stores import contents, open_store, replayed

SEED_COLUMNS = {
    "executions": {
        "id",
        "trigger_type",
        "trigger_id",
        "skill",
        "repo",
        "issue_number",
        "started_at",
        "finished_at",
        "success",
        "error",
        "turns",
        "duration_ms",
        "session_id",
        "cost_usd",
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
        "api_duration_ms",
        "stop_reason",
        "workflow_run_id",
        "output_text",
    },
    "workflow_runs": {
        "id",
        "workflow_name",
        "trigger_id",
        "repo",
        "issue_number",
        "current_phase",
        "phase_history",
        "status",
        "context",
        "scratch",
        "node_statuses",
        "restart_count",
        "started_at",
        "updated_at",
        "finished_at",
    },
    "workflow_approvals": {
        "id",
        "workflow_run_id",
        "gate",
        "summary",
        "status",
        "kind",
        "requested_by",
        "responded_by",
        "response",
        "created_at",
        "responded_at",
    },
    "workflow_overrides": {"name", "enabled", "updated_at", "updated_by"},
}


class Tables:
    """A state directory, written by changes and read with plain SQL."""

    def __init__(self, directory: StateDirectory) -> None:
        self.directory = directory

    def apply(self, *changes: Change) -> None:
        async def work() -> None:
            async with open_store(self.directory) as store:
                answers = await store.apply(changes)
            assert all(isinstance(one, Applied) for one in answers), answers

        anyio.run(work)

    def work(self, number: int, *phases: str, **how: Any) -> None:
        for name in phases:
            one = self.read(lambda reader, name=name: job_of(reader, number, name))
            self.apply(begin(one), end(one, **how))

    def read(self, ask: Any) -> Any:
        reader = SqliteReader(self.directory.root)
        try:
            return ask(reader)
        finally:
            reader.close()

    def select(self, statement: str) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.directory.database))
        try:
            return list(connection.execute(statement))
        finally:
            connection.close()

    def run(self, number: int = 1) -> dict[str, Any]:
        """The columns of a run that are JSON."""
        names = ("context", "scratch", "node_statuses", "phase_history")
        where = f"FROM workflow_runs WHERE id = '{run_id(number)}'"
        (row,) = self.select(f"SELECT {', '.join(names)} {where}")
        return {
            name: None if value is None else json.loads(value)
            for name, value in zip(names, row, strict=True)
        }

    def check(self, tmp_path: Path) -> None:
        """The ledger gives the same rows, projections included."""
        assert replayed(self.directory, tmp_path / "again.db") == contents(self.directory.database)
        assert differences(self.directory.root, at=START) == []


@pytest.fixture
def tables(directory: StateDirectory) -> Tables:
    return Tables(directory)


def test_tables_have_the_columns_that_other_programs_know(tables: Tables) -> None:
    tables.apply(start_run(1, workflow(job("dig"))))

    for table, columns in SEED_COLUMNS.items():
        found = {
            name for (name,) in tables.select(f"SELECT name FROM pragma_table_xinfo('{table}')")
        }
        assert columns <= found, table
    indexes = {name for (name,) in tables.select("SELECT name FROM sqlite_schema")}
    assert {"idx_workflow_runs_trigger", "idx_workflow_runs_status"} <= indexes


def test_cost_of_an_execution_is_shown_in_dollars_too(tables: Tables) -> None:
    tables.apply(start_run(1, workflow(job("dig"))))
    tables.work(1, "dig")
    database = open_for_writing(tables.directory.database)
    database.execute("UPDATE executions SET cost_microusd = 1250000")
    database.close()

    assert tables.select("SELECT cost_usd FROM executions") == [(1.25,)]


def test_columns_of_a_run_follow_its_nodes(tables: Tables, tmp_path: Path) -> None:
    inner = in_turn(job("try"), job("look"))
    loop = Loop(max_iterations=2, until="loop.iteration == 2")
    block = phase("fix", BlockAction(phases=inner), loop=loop)
    phases = in_turn(job("dig", output=SCHEMA, retries=1), block, job("sow"))
    tables.apply(start_run(1, workflow(*phases)))
    assert tables.run()["node_statuses"] == {"dig": "waiting"}
    assert tables.run()["phase_history"] == []

    tables.work(1, "dig", answer="no json")
    tables.work(1, "dig#2", answer='{"ok": true}')
    tables.work(1, "fix[1]/try", "fix[1]/look", "fix[2]/try", "fix[2]/look")

    assert tables.run()["node_statuses"] == {
        "dig": "succeeded",
        "fix": "succeeded",
        "sow": "waiting",
    }
    tables.work(1, "sow", outcome=FAILURE)
    history = tables.run()["phase_history"]
    assert [(one["phase"], one["success"]) for one in history] == [
        ("dig", False),
        ("dig", True),
        ("fix", True),
        ("sow", False),
    ]
    assert all(one["timestamp"].startswith("2026-03-01T12:") for one in history)
    assert tables.select("SELECT current_phase, status FROM workflow_runs") == [("sow", "failed")]
    tables.check(tmp_path)


def test_context_stays_and_scratch_is_the_latest(tables: Tables, tmp_path: Path) -> None:
    tables.apply(start_run(1, workflow(job("dig"))))
    context = tables.run()["context"]
    assert set(context) == {"inputs", "trigger"}
    for values in ({"a": "x\"'", "b": [1, {"c": None}]}, {"a": None, "z": "ä\u2028"}):
        tables.apply(MergeScratch(run_id=run_id(1), at=instant(1), values=values))

    assert tables.run()["scratch"] == {"b": [1, {"c": None}], "z": "ä\u2028"}
    tables.work(1, "dig")
    assert tables.run()["context"] == context
    tables.check(tmp_path)


def test_place_of_a_loop_names_the_execution_with_its_text(tables: Tables) -> None:
    loop = Loop(max_iterations=3, until="loop.iteration == 2")
    tables.apply(start_run(1, workflow(job("dig", loop=loop))))

    tables.work(1, "dig[1]", answer="first")

    place = tables.run()["scratch"]["dig"]
    assert place["iteration"] == 1
    found = tables.select("SELECT id, skill, output_text FROM executions")
    assert found == [(place["lastOutputExecutionId"], "graze:dig[1]", "first")]


def test_gates_are_approvals_to_other_programs(tables: Tables) -> None:
    reply = gate("tell", action=GateAction(gate=GateKind.REPLY, summary="Where?"))
    phases: Sequence[Any] = (gate("ask"), reply, gate("late"), gate("never"), gate("open"))
    tables.apply(start_run(1, workflow(*phases)))

    def item(name: str) -> Any:
        return tables.read(lambda reader: gate_of(reader, 1, name))

    tables.apply(answer(item("ask"), text="fine"))
    tables.apply(answer(item("tell"), text="by the lake", by="bob"))
    tables.apply(answer(item("never"), Verdict.REJECT, text="no"))
    statement = (
        "SELECT gate, summary, status, kind, requested_by, responded_by, response"
        " FROM workflow_approvals ORDER BY gate"
    )
    assert tables.select(statement) == [
        ("ask", "ask?", "approved", "approve", "ada", "ada", "fine"),
        ("late", "late?", "pending", "approve", "ada", None, None),
        ("never", "never?", "rejected", "approve", "ada", "ada", "no"),
        ("open", "open?", "pending", "approve", "ada", None, None),
        ("tell", "Where?", "approved", "reply", "ada", "bob", "by the lake"),
    ]
    tables.apply(CancelRun(run_id=run_id(1), at=instant(9)))
    pending = "SELECT count(*) FROM workflow_approvals WHERE status = 'pending'"
    assert tables.select(pending) == [(0,)]


def test_gate_that_expired_reads_rejected(tables: Tables) -> None:
    ask = gate("ask", timeout=instant(60) - instant(0))
    tables.apply(start_run(1, workflow(ask)))
    item = tables.read(lambda reader: gate_of(reader, 1, "ask"))

    tables.apply(ExpireItem(item_id=item.id, at=instant(61)))

    found = tables.select("SELECT status, responded_by FROM workflow_approvals")
    assert found == [("rejected", "nightherd")]


def test_switch_is_a_row_that_is_deleted_again(tables: Tables, tmp_path: Path) -> None:
    off = OverrideWorkflow(name="graze", at=instant(0), by="ada", enabled=False)
    tables.apply(off)
    statement = "SELECT name, enabled, updated_by FROM workflow_overrides"
    assert tables.select(statement) == [("graze", 0, "ada")]

    tables.apply(OverrideWorkflow(name="graze", at=instant(1), by="bob"))

    assert tables.select(statement) == []
    tables.check(tmp_path)


def test_node_is_recorded_once_for_each_attempt(tables: Tables) -> None:
    tables.apply(start_run(1, workflow(job("dig"))))
    connection = apsw.Connection(str(tables.directory.database))
    twice = (
        "INSERT INTO workflow_nodes (id, run_id, path, status, kind, created_at)"
        f" VALUES ('x', '{run_id(1)}', 'dig', 'waiting', 'job', '')"
    )
    try:
        with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
            connection.execute(twice)
    finally:
        connection.close()
