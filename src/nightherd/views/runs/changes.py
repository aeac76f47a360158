"""What one change of the ledger says about a run: the same events in the same order, however often it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from nightherd.decoding import convert, decode_json
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.job import JOB_LIFECYCLE, JobStatus
from nightherd.model.workflows.node import (
    NO_ITEM,
    NO_ITERATION,
    NodeKind,
    NodeStatus,
    SkipCause,
    brackets,
)
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import LedgerEntry
from nightherd.views.jobs.jobs import timestamp
from nightherd.views.people.inbox import item_row
from nightherd.views.people.inbox_rows import ItemRow
from nightherd.views.runs.runs import RunRow, run_row

SNAPSHOT = "Snapshot"
"""The kind of changes that hold every row: a ledger that was made anew begins with them."""
JOBS, NODES, ITEMS, RUNS = "jobs", "workflow_nodes", "inbox_items", "workflow_runs"
CONTEXTS = "workflow_contexts"
"""Written once, with the change that starts a run."""
TABLES = frozenset({JOBS, NODES, ITEMS, RUNS, CONTEXTS})


class JobImage(msgspec.Struct, frozen=True):
    """As much of a job's row as it takes to follow the job."""

    id: JobId
    status: JobStatus
    node_id: str | None = None
    workflow_run_id: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more can happen to the job."""
        return JOB_LIFECYCLE.is_terminal(self.status)


class RunChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a change says about a run."""

    jobs: tuple[JobImage, ...] = ()
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """The kind and data of each; the run itself comes last."""
    ends_run: bool = False
    is_start: bool = False
    """Whether it started the run."""


def change_of_run(entry: LedgerEntry, run_id: RunId) -> RunChange | None:
    """Return what a change says about the run; None when it says nothing.

    Where the change wrote a row several times, the last image counts.
    """
    mark = f'"{run_id}"'.encode()
    rows = [(table, bytes(row)) for table, row in entry.rows if table in TABLES]
    rows = [(table, row) for table, row in rows if mark in row]
    if not rows:
        return None
    jobs: dict[str, JobImage] = {}
    events: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    ends_run = False
    for table, row in rows:
        if table == JOBS:
            job = decode_json(row, JobImage)
            if job.workflow_run_id == run_id:
                jobs[job.id] = job
        elif table == NODES:
            node = _decoded(row, WorkflowNode)
            if node.run_id == run_id:
                events[table, node.id] = ("node", node_change(node))
        elif table == ITEMS:
            item = _decoded(row, InboxItem)
            if item.workflow_run_id == run_id:
                data = {**item_row(item), "phase": phase_in(run_id, item.node_id) or None}
                events[table, item.id] = ("inbox", data)
        elif table == RUNS:
            run = _decoded(row, WorkflowRun)
            if run.id == run_id:
                events[table, run.id] = ("run", run_row(run, entry.at))
                ends_run = run.is_terminal
    at = timestamp(entry.at)
    ordered = sorted(events.values(), key=lambda one: one[0] == "run")
    is_start = entry.kind != SNAPSHOT and any(table == CONTEXTS for table, _ in rows)
    return RunChange(
        jobs=tuple(jobs.values()),
        events=tuple((kind, {"at": at, **data}) for kind, data in ordered),
        ends_run=ends_run,
        is_start=is_start,
    )


def phase_in(run_id: RunId, node_id: str | None) -> str:
    """Return the path of a node with its iteration, item and attempt; empty for what is no node of the run."""
    return (node_id or "").removeprefix(f"{run_id}/")


def _decoded(row: bytes, kind: type[Any]) -> Any:
    """The row of an image: flags are 0 or 1 in it, and maps are text."""
    fields = msgspec.json.decode(row)
    if kind is WorkflowRun and isinstance(fields.get("limits"), str):
        fields["limits"] = msgspec.json.decode(fields["limits"])
    return convert(fields, kind, strict=False)


class NodeChangeRow(TypedDict):
    """A node as one change left it."""

    run_id: str
    path: str
    status: NodeStatus
    kind: NodeKind
    iteration: int | None
    item: int | None
    attempt: int
    began_at: str
    ended_at: str | None
    job_id: str | None
    child_run_id: str | None
    inbox_item_id: str | None
    due_at: str | None
    waits_for_event: str | None
    exit_code: int | None
    error: str | None
    skip_cause: SkipCause | None
    message: str | None
    kept_from: str | None


class NodeEvent(NodeChangeRow):
    """A phase that changed, and when."""

    at: str


class ItemEvent(ItemRow):
    """A gate that was opened or answered, or the item of a failed run, and when."""

    phase: str | None
    at: str


class RunChangeEvent(RunRow):
    """A run that changed, and when."""

    at: str


def node_change(node: WorkflowNode) -> NodeChangeRow:
    """Return a node as one change left it, as plain data."""
    return {
        "run_id": node.run_id,
        "path": node.path + brackets(node.iteration, node.item),
        "status": node.status,
        "kind": node.kind,
        "iteration": None if node.iteration == NO_ITERATION else node.iteration,
        "item": None if node.item == NO_ITEM else node.item,
        "attempt": node.attempt,
        "began_at": timestamp(node.created_at),
        "ended_at": timestamp(node.ended_at),
        "job_id": node.job_id,
        "child_run_id": node.child_run_id,
        "inbox_item_id": node.item_id,
        "due_at": timestamp(node.due_at),
        "waits_for_event": node.event,
        "exit_code": node.exit_code,
        "error": node.error,
        "skip_cause": node.cause,
        "message": node.message,
        "kept_from": node.kept_from,
    }
