"""The rows of workflow runs: what is listed of a run, what it began with, and its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import ItemId
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.units import FREE, MicroUsd
from nightherd.model.workflows.node import (
    NO_ITEM,
    NO_ITERATION,
    Node,
    NodeKey,
    NodeKind,
    NodeStatus,
    SkipCause,
    brackets,
)
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunId, RunStatus

SCRATCH_LIMIT = 64 * 1024
"""Bytes of a run's scratch as JSON."""
CONTEXT_LIMIT = 2 * 1024 * 1024
"""Bytes of what a run begins with, as JSON."""


class WorkflowRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run's row: everything a list shows, nothing unbounded."""

    id: RunId
    workflow_name: str
    trigger_id: str
    """The delivery, slot, channel or request that started it."""
    status: RunStatus
    current_phase: str
    """The phase that began or ended last; empty before the first."""
    started_at: datetime
    """When it was started, also while it is queued."""
    updated_at: datetime
    repo: str | None = None
    issue_number: int | None = None
    restart_count: int = 0
    """Executions of its jobs that were lost since a phase last succeeded."""
    finished_at: datetime | None = None
    trigger_type: TriggerType = TriggerType.MANUAL
    definition_hash: str = ""
    """The pinned workflow that it runs."""
    error: str | None = None
    """Why it failed or was cancelled."""
    stopping: str | None = None
    """Why it is being ended: nothing new begins, and what runs is cancelled."""
    is_failing: bool = False
    """Whether it ends as failed, not as cancelled, when it is being ended."""
    attempt: int = 1
    """How many runs there were before it by retry or fork, and one."""
    retried_from: RunId | None = None
    forked_from: RunId | None = None
    root_run_id: RunId | None = None
    """The first run of a tree of runs; None when that is this one."""
    parent_run_id: RunId | None = None
    parent_node_id: str | None = None
    """The node of the parent run that started it."""
    concurrency_key: str | None = None
    """Runs with the same key count together; None when their number is not limited."""
    schedule: str | None = None
    started_by: str | None = None
    dedupe_key: str | None = None
    worked_ms: int = 0
    """How long its jobs and sub-workflows that have ended were worked on."""
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Limits of the run that a person has raised, as a job keeps them."""
    cost_microusd: MicroUsd = FREE
    """Of its jobs and sub-workflows that have ended."""
    number: int = 0
    """Place in the order of starting, and the cursor of lists."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing can happen to this run any more."""
        return RUN_LIFECYCLE.is_terminal(self.status)

    @property
    def root(self) -> RunId:
        """The first run of the tree that it belongs to."""
        return self.root_run_id or self.id


class WorkflowContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a run began with. Never changed."""

    run_id: RunId
    context: Mapping[str, Any]
    """`inputs` and `trigger`."""


class WorkflowScratch(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of a run from phase to phase: small values only; long texts are named by the execution that wrote them."""

    run_id: RunId
    scratch: Mapping[str, Any]


class PinnedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow with everything that its runs need, as it was when one began. Never changed."""

    hash: str
    name: str
    created_at: datetime
    body: str
    """JSON (`pinned.py`)."""


class WorkflowNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node's row. The nodes of a run are the truth about it."""

    id: str
    """`RUN/PATH`, with the iteration and item in brackets and the attempt behind `#`."""
    run_id: RunId
    path: str
    status: NodeStatus
    kind: NodeKind
    created_at: datetime
    iteration: int = NO_ITERATION
    item: int = NO_ITEM
    attempt: int = 1
    ended_at: datetime | None = None
    job_id: JobId | None = None
    child_run_id: RunId | None = None
    item_id: ItemId | None = None
    """The inbox item of a gate."""
    due_at: datetime | None = None
    """When a wait is over, or a phase with a timeout has failed."""
    event: str | None = None
    """What a wait waits for."""
    exit_code: int | None = None
    error: str | None = None
    cause: SkipCause | None = None
    is_final: bool = False
    kept_from: RunId | None = None
    """The run that did this work, when a later run keeps it."""
    session_id: SessionId | None = None
    """The branch of its job's session that what follows continues, when a later run keeps the node."""
    message: str | None = None
    """What people are told about the phase, most recently."""
    number: int = 0
    """Place in the order of beginning, in its run."""

    @property
    def key(self) -> NodeKey:
        """Which instance of which phase."""
        return NodeKey(self.path, self.iteration, self.item, self.attempt)

    @property
    def is_top_level(self) -> bool:
        """Whether it is a whole phase of the workflow, not one inside a block, an item or an iteration."""
        is_whole = self.item == NO_ITEM and self.iteration == NO_ITERATION
        return is_whole and "/" not in self.path and ":" not in self.path

    @property
    def has_ended(self) -> bool:
        """Whether it has its outcome."""
        return self.ended_at is not None

    def as_node(self, items: tuple[Any, ...] | None = None) -> Node:
        """Return the node as decisions know it."""
        return Node(
            key=self.key,
            status=self.status,
            kind=self.kind,
            job_id=self.job_id or self.child_run_id,
            items=items,
            exit_code=self.exit_code,
            error=self.error,
            cause=self.cause,
            is_final=self.is_final,
        )


class WorkflowNodeTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The unbounded part of a node, kept apart from its row."""

    node_id: str
    content: Mapping[str, Any]
    """`items` of a `for_each`; `output` of what is no job with text."""


class RunNodes(msgspec.Struct, frozen=True):
    """The nodes of a run, as rows and as decisions know them. Whoever asks for it does not change it."""

    rows: dict[NodeKey, WorkflowNode] = msgspec.field(default_factory=dict)
    nodes: dict[NodeKey, Node] = msgspec.field(default_factory=dict)

    def put(self, row: WorkflowNode, items: tuple[Any, ...] | None) -> None:
        """Add a node, or replace it."""
        key = row.key
        self.rows[key] = row
        self.nodes[key] = row.as_node(items)

    def copy(self) -> RunNodes:
        """Return one that may be changed."""
        return RunNodes(dict(self.rows), dict(self.nodes))


def items_in(texts: WorkflowNodeTexts | None) -> tuple[Any, ...] | None:
    """Return the items of a `for_each` that its texts hold."""
    items = None if texts is None else texts.content.get("items")
    return None if items is None else tuple(items)


class WorkflowEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was sent to a run. A wait takes the oldest of its name that no other took."""

    id: str
    """`RUN/KEY`: the same key is the same event."""
    run_id: RunId
    name: str
    at: datetime
    by: str
    payload: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`payload`: any JSON value."""
    node_id: str | None = None
    """The node that took it."""
    number: int = 0


class WorkflowOverride(msgspec.Struct, frozen=True, kw_only=True):
    """A person has switched a workflow off or on, beside its file. Deleted, the file counts again."""

    name: str
    enabled: bool
    updated_at: datetime
    updated_by: str | None = None


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs fit: of every field that is set, one of its values (model/workflows/filter.py)."""

    workflows: tuple[str, ...] = ()
    statuses: tuple[RunStatus, ...] = ()
    triggers: tuple[TriggerType, ...] = ()
    schedules: tuple[str, ...] = ()
    """Each a name, or WORKFLOW/NAME."""
    least_cost: MicroUsd | None = None
    most_cost: MicroUsd | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Started before this."""
    words: tuple[str, ...] = ()
    """Each is somewhere in its id, workflow, schedule, phase or error."""


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a list shows: newest first, those after the run with the number `before`, at most `limit`."""

    workflow: str | None = None
    status: RunStatus | None = None
    filter: RunFilter | None = None
    before: int | None = None
    limit: int = 20


def scratch_size(scratch: Mapping[str, Any]) -> int:
    """Return how many bytes the scratch has as JSON."""
    return len(json.dumps(scratch, ensure_ascii=False).encode(errors="surrogatepass"))


def node_id(run_id: RunId, key: NodeKey) -> str:
    """Return the id of a node."""
    attempt = f"#{key.attempt}" if key.attempt > 1 else ""
    return f"{run_id}/{key.path}{brackets(key.iteration, key.item)}{attempt}"


def phase_of(job: Job) -> str | None:
    """Return the path of the phase that a job is of, with its iteration, item and attempt; None for other jobs."""
    if job.node_id is None or job.workflow_run_id is None:
        return None
    return job.node_id.removeprefix(f"{job.workflow_run_id}/")


def skill_of(run: WorkflowRun, job: Job) -> str:
    """Return what an execution of a phase is called: `WORKFLOW:PHASE`."""
    return f"{run.workflow_name}:{phase_of(job)}"


def is_iteration(job: Job) -> bool:
    """Return whether the job is in a loop."""
    return "[" in (phase_of(job) or "")
