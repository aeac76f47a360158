"""A story of runs that every process tells the same way: the rows alone say what comes next."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.model.agents.agent import Durability
from nightherd.model.change import Change
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    CancelRun,
    MergeScratch,
    SendEvent,
)
from nightherd.model.workflows.definition import (
    BlockAction,
    ForEach,
    Loop,
    OnFailure,
    TriggerRule,
    UntilCommand,
    WaitAction,
    WorkflowAction,
)
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunStatus
from nightherd.model.workflows.triggers import Concurrency, InputSpec, InputType
from nightherd.ports import Probe, StateReader, no_probe
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.contracts.run import SCHEMA
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.run_values import (
    CANCELLED,
    FAILURE,
    answer,
    begin,
    end,
    event,
    gate,
    instant,
    job,
    lose,
    phase,
    run_id,
    start_run,
    workflow,
)
from nightherd.testing.state_values import SUCCESS

TELL = f"{__name__}:tell"

INNER = workflow(job("work"), gate("look", "work"), name="inner")
STORY = workflow(
    job("dig", output=SCHEMA, retries=1),
    gate("ask", "dig"),
    phase("rest", WaitAction(duration="1h"), "ask"),
    event("rain", "ask"),
    job("each", "rest rain", for_each=ForEach(items="inputs.fields", max_parallel=1)),
    phase("sub", WorkflowAction(workflow="inner", definition=INNER), "each"),
    phase(
        "polish",
        BlockAction(phases=(job("rub"), gate("veto", on_failure=OnFailure.CONTINUE))),
        "sub",
        loop=Loop(max_iterations=3, until_command=UntilCommand(command="test -e shiny")),
    ),
    job("risk", "polish", on_failure=OnFailure.CONTINUE),
    job("mend", "risk", trigger_rule=TriggerRule.ONE_FAILED),
    job("last", "mend", when="phases.risk.status == 'failed'"),
    job("never", "last", when="phases.last.status == 'failed'"),
    concurrency=Concurrency(max_runs=1),
    inputs={"fields": InputSpec(type=InputType.LIST, required=True)},
)
SECOND = replace(
    workflow(
        job("work"),
        phase("sub", WorkflowAction(workflow="inner", definition=INNER)),
        gate("ask"),
        phase("slow", BlockAction(phases=(gate("wait"),)), timeout=timedelta(minutes=1)),
        job("last", "work sub ask"),
    ),
    concurrency=STORY.concurrency,
)


def next_change(reader: StateReader) -> Change | None:
    """What happens next; None when the story is told."""
    first, second = reader.find_run(run_id(1)), reader.find_run(run_id(2))
    if first is None:
        return start_run(1, STORY, inputs={"fields": ["a", "b"]})
    if second is None:
        return start_run(2, SECOND)
    if reader.find_run_scratch(first.id) is None:
        return MergeScratch(run_id=first.id, at=instant(1), values={"note": "x"})
    if not reader.events_of_run(first.id):
        return SendEvent(run_id=first.id, name="rain", key="a", at=instant(1), by="sky")
    if not first.is_terminal:
        return next_of_run(first, reader)
    return None if second.is_terminal else next_of_second(second, reader)


def next_of_run(run: WorkflowRun, reader: StateReader) -> Change:
    for node in reader.nodes_of_run(run.id):
        if not node.has_ended and node.kind is not NodeKind.GROUP:
            return next_of_node(node, reader)
    raise AssertionError(f"{run.id} waits for nothing")


def next_of_node(node: WorkflowNode, reader: StateReader) -> Change:
    match node.kind:
        case NodeKind.JOB | NodeKind.UNTIL:
            assert node.job_id is not None
            found = reader.find_job(node.job_id)
            assert found is not None
            return next_of_job(node, found)
        case NodeKind.GATE:
            assert node.item_id is not None
            item = reader.find_item(node.item_id)
            assert item is not None
            return answer(item, Verdict.REJECT if node.path.endswith("veto") else None)
        case NodeKind.WAIT:
            assert node.due_at is not None
            return AdvanceRun(run_id=node.run_id, at=node.due_at)
        case _:
            assert node.child_run_id is not None
            child = reader.find_run(node.child_run_id)
            assert child is not None
            return next_of_run(child, reader)


def next_of_job(node: WorkflowNode, found: Job) -> Change:
    before = replace(found, epoch=found.epoch - 1)
    if found.status is JobStatus.PENDING:
        return begin(found)
    if node.path == "each" and node.item == 0 and found.epoch == 1:
        return lose(before)
    if node.kind is NodeKind.UNTIL:
        code = 1 if node.iteration == 1 else 0
        return end(before, answer="", outcome=replace(SUCCESS, stop_reason=f"exit_{code}"))
    if node.path == "dig":
        return end(before, answer="what?" if node.attempt == 1 else '{"ok": true}')
    return end(before, outcome=FAILURE) if node.path == "risk" else end(before)


def next_of_second(run: WorkflowRun, reader: StateReader) -> Change:
    """It is cancelled while a job of it runs, its block has timed out, and its sub-workflow works."""
    (work,) = [one for one in reader.jobs_of_run(run.id) if (one.node_id or "").endswith("/work")]
    if work.status is JobStatus.PENDING:
        return begin(work)
    if reader.runs_to_advance(instant(30), 5):
        return AdvanceRun(run_id=run.id, at=instant(30))
    if run.stopping is None:
        return CancelRun(run_id=run.id, at=instant(31), reason="enough")
    assert run.status is RunStatus.RUNNING
    return end(replace(work, epoch=work.epoch - 1), 32, outcome=CANCELLED)


async def step(root: Path, probe: Probe = no_probe) -> str | None:
    """Carry out what comes next and say what it was; None when the story is told."""
    reader = SqliteReader(root)
    try:
        change = next_change(reader)
    finally:
        reader.close()
    if change is None:
        return None
    store = SqliteStore(root, FakeClock(), probe, outbox_limit=4, durability=Durability.PROCESS)
    try:
        await store.apply([change])
    finally:
        await store.close()
    return type(change).__name__


def tell(order: dict[str, Any], say: Say) -> None:
    """Carry out one step, killed when it comes to a point."""
    probe = Ending(order["point"], nth=1, ending=signal.SIGKILL)
    say(str(anyio.run(step, Path(order["root"]), probe)))
