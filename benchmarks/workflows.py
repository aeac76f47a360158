"""What workflow runs cost: lists among many runs, a fan-out beside plain jobs, and a fleet where thousands wait.

Lists: the newest 20 runs of 100,000 and of 1,000, least of many rounds. Fan-out: a workflow with a list of 200 items, each an
empty scripted phase, and one with 200 phases side by side, beside 200 plain jobs of the same agent, in alternating rounds
through the real worker, from submitting to the last one done. At rest: the CPU time of a fleet with 10,000 runs that wait at
a gate.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
from benchmarks.dispatch import silent, submit_many
from benchmarks.idle import cpu_seconds
from benchmarks.inbox import SECONDS, SETTLING, daemon
from benchmarks.job_list import submit_first

from nightherd.db.connection import open_for_writing
from nightherd.engine.operations.run_requests import StartWorkflow
from nightherd.engine.operations.runs import get_run, start_workflow
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import InboxItem, InboxTexts, ItemKind, ItemStatus, item_id
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.workflows.conductor.pinned import PinnedBody
from nightherd.model.workflows.conductor.pinned import as_row as pinned_row
from nightherd.model.workflows.definition import GateAction, Phase, WorkflowDefinition
from nightherd.model.workflows.node import NodeKind, NodeStatus
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    RunQuery,
    WorkflowContext,
    WorkflowNode,
    WorkflowRun,
)
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.ports import StateReader
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.tables import table_of
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.stores import open_reader

MANY, FEW, PAGE = 100_000, 1_000, 20
ROUNDS, FAN_ROUNDS = 200, 5
ITEMS = 200
PAUSED = 10_000
NOW = datetime(2026, 3, 1, tzinfo=UTC)

FLEET = """\
fleet:
  name: fan
agents:
  - name: empty
    runtime: scripted
    default_prompt: go
    instances: {max_concurrent: 16}
    script:
      - say: done
workflows:
  each:
    inputs: {items: list}
    phases:
      - name: each
        agent: empty
        prompt: go
        for_each: {items: inputs.items, max_parallel: 200}
  wide:
    phases:
"""


def fill(directory: StateDirectory, count: int, *, is_paused: bool) -> None:
    """A store with that many runs of one workflow, with what they began with."""
    anyio.run(submit_first, directory)
    gate = Phase(name="ok", action=GateAction(summary="go on?"))
    definition = WorkflowDefinition(name="wait", phases=(gate,))
    pinned = pinned_row(PinnedBody(definition=definition), NOW)
    database = open_for_writing(directory.database)
    database.execute("BEGIN IMMEDIATE")
    rows = (row for number in range(1, count + 1) for row in rows_of(number, pinned, is_paused))
    for row in (pinned, *rows):
        table = table_of(type(row))
        database.execute(table.upsert, tuple(table.image(row).values()))
    database.execute("COMMIT")
    database.close()


def rows_of(number: int, pinned: PinnedWorkflow, is_paused: bool) -> Iterator[Any]:
    """One run with what it began with; a paused one with its gate."""
    run_id = RunId(f"run-2026-03-01-{number:06x}")
    at = NOW + timedelta(seconds=number)
    yield WorkflowRun(
        id=run_id,
        workflow_name="wait",
        trigger_id=f"delivery-{number}",
        status=RunStatus.PAUSED if is_paused else RunStatus.SUCCEEDED,
        current_phase="ok",
        started_at=at,
        updated_at=at,
        finished_at=None if is_paused else at,
        definition_hash=pinned.hash,
        number=number,
    )
    yield WorkflowContext(run_id=run_id, context={"inputs": {"body": "x" * 2_000}})
    if is_paused:
        yield from gate_of(number, run_id, at)


def gate_of(number: int, run_id: RunId, at: datetime) -> Iterator[Any]:
    """The gate at which a run waits."""
    node = f"{run_id}/ok"
    key = f"gate:{node}"
    item = InboxItem(
        id=item_id(key),
        kind=ItemKind.APPROVAL,
        status=ItemStatus.PENDING,
        created_at=at,
        subject=run_id,
        title="go on?",
        dedupe_key=key,
        workflow_run_id=run_id,
        node_id=node,
        number=number,
    )
    yield item
    yield InboxTexts(item_id=item.id, body={"summary": "go on?"})
    yield WorkflowNode(
        id=node,
        run_id=run_id,
        path="ok",
        status=NodeStatus.PAUSED,
        kind=NodeKind.GATE,
        created_at=at,
        item_id=item.id,
        number=1,
    )


def list_seconds(reader: StateReader) -> float:
    """The least time that a list of the newest runs took."""
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        found = reader.list_runs(RunQuery(limit=PAGE))
        least = min(least, time.perf_counter() - begun)
        if len(found) != PAGE:
            raise SystemExit(f"{len(found)} runs instead of {PAGE}")
    return least


def listed(count: int) -> float:
    """The same in a new store with that many runs."""
    with tempfile.TemporaryDirectory() as folder:
        directory = init_state_directory(Path(folder) / ".nightherd")
        fill(directory, count, is_paused=False)
        with closing(open_reader(directory.root)) as reader:
            return list_seconds(reader)


def make_fleet(folder: Path) -> Fleet:
    wide = "".join(
        f"      - {{name: p{number}, agent: empty, prompt: go, depends_on: []}}\n"
        for number in range(ITEMS)
    )
    (folder / "nightherd.yaml").write_text(FLEET + wide)
    return load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet


async def seconds_of(kind: str) -> float:
    """How long 200 empty jobs took: as items, as phases, or by themselves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fleet, state = make_fleet(folder), folder / ".nightherd"
        async with open_worker(state, fleet, {}) as context:
            loop = make_worker_loop(fleet, context, silent(), leaves_when_idle=True)
            begun = time.perf_counter()
            run: WorkflowRun | None = None
            if kind == "jobs":
                await submit_many(fleet, context, ITEMS)
            else:
                inputs = {"items": list(range(ITEMS))} if kind == "each" else {}
                request = StartWorkflow(workflow=kind, inputs=inputs)
                run = (await start_workflow(request, context)).run
            await loop.work()
            spent = time.perf_counter() - begun
            done = context.reader.list_jobs(JobQuery(status=JobStatus.COMPLETED, limit=ITEMS + 1))
            if len(done) != ITEMS:
                raise SystemExit(f"{len(done)} jobs instead of {ITEMS}")
            if run is not None and not _has_succeeded(run.id, context.reader):
                raise SystemExit(f"{run.id} did not succeed")
            return spent


def _has_succeeded(run_id: RunId, reader: StateReader) -> bool:
    return get_run(reader, run_id).status is RunStatus.SUCCEEDED


def resting_share() -> float:
    """How much of a core a fleet takes in which thousands of runs wait at a gate."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_fleet(folder)
        fill(init_state_directory(folder / ".nightherd"), PAUSED, is_paused=True)
        with daemon(folder) as process:
            time.sleep(SETTLING)
            before = cpu_seconds(process.pid)
            time.sleep(SECONDS)
            return (cpu_seconds(process.pid) - before) / SECONDS


def main() -> None:
    """Prints each of them beside its limit."""
    few, many = listed(FEW), listed(MANY)
    print(f"newest 20 of {MANY:,} runs: {many * 1e3:.3f} ms (limit 0.2 ms)")
    print(f"newest 20 of {FEW:,} runs: {few * 1e3:.3f} ms")
    print(f"newest 20 of {MANY:,} beside {FEW:,} runs: {many / few:.2f}x (limit 2x)")
    spent: dict[str, list[float]] = {"jobs": [], "each": [], "wide": []}
    for _ in range(FAN_ROUNDS):
        for kind, times in spent.items():
            times.append(anyio.run(seconds_of, kind))
    jobs, each, wide = (statistics.median(times) for times in spent.values())
    print(f"{ITEMS} plain jobs: {jobs * 1e3:.0f} ms")
    print(f"{ITEMS} items beside plain jobs: {each / jobs:.2f}x (limit 1.3x)")
    print(f"{ITEMS} phases side by side beside plain jobs: {wide / jobs:.2f}x (limit 1.3x)")
    share = resting_share()
    print(f"a fleet with {PAUSED:,} paused runs takes {share:.2%} of a core")
    print(f"CPU of {PAUSED} paused runs in a second: {share * 1e3:.2f} ms (limit 5 ms)")


if __name__ == "__main__":
    main()
