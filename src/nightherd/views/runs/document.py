"""One run with everything around it: its phases, costs, inputs, scratch, limits and what it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from nightherd.model.jobs.job import JobStatus
from nightherd.model.limits.limits import COUNTED, LimitName, limits_document
from nightherd.model.units import MicroUsd, to_usd
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION, NodeStatus, SkipCause
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.next_step import SpellStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import IsAtWork, lost_row, seconds_of, timestamp
from nightherd.views.jobs.rows import LostRow
from nightherd.views.runs.outputs import definition_of
from nightherd.views.runs.runs import RunRow, find_run, run_row
from nightherd.views.runs.tree import NodeView, cost_of_run, node_tree
from nightherd.views.runs.waits import Wait, WaitRow, wait_row


class RunLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What all jobs of a run may use together, and have used."""

    name: LimitName
    maximum: int
    used: int


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run with everything around it."""

    run: WorkflowRun
    definition: WorkflowDefinition | None
    """None for a run that came from elsewhere without it."""
    nodes: tuple[NodeView, ...]
    cost: MicroUsd
    """Of all its jobs and everything below them, running ones included."""
    inputs: Mapping[str, Any]
    trigger: Mapping[str, Any]
    scratch: Mapping[str, Any]
    limits: Sequence[RunLimit] = ()
    children: Sequence[WorkflowRun] = ()
    """The runs that it started, first to last."""

    def everything(self) -> Iterator[NodeView]:
        """Yield every node, in the order of the definition."""
        for node in self.nodes:
            yield from node.everything()

    @property
    def waits(self) -> list[tuple[NodeView, Wait]]:
        """What its open nodes wait for, in the order of the definition."""
        return [(view, view.wait) for view in self.everything() if view.wait is not None]


def show_run(
    reader: StateReader,
    run_id: RunId,
    now: datetime,
    is_at_work: IsAtWork,
    agents: Collection[str] | None = None,
) -> RunView:
    """Return the run and everything around it; `agents` are those of the fleet, where they are known."""
    run = find_run(reader, run_id)
    definition = definition_of(reader, run)
    context, scratch = reader.find_run_context(run_id), reader.find_run_scratch(run_id)
    values: Mapping[str, Any] = {} if context is None else context.context
    return RunView(
        run=run,
        definition=definition,
        nodes=node_tree(reader, run, definition, is_at_work, now, agents),
        cost=cost_of_run(reader, run_id),
        inputs=values.get("inputs", {}),
        trigger=values.get("trigger", {}),
        scratch={} if scratch is None else scratch.scratch,
        limits=tuple(_limits(reader, run, definition)),
        children=reader.runs_of_parent(run_id),
    )


def _limits(
    reader: StateReader, run: WorkflowRun, definition: WorkflowDefinition | None
) -> Iterator[RunLimit]:
    declared = {} if definition is None else limits_document(definition.limits)
    maxima = {**declared, **run.limits}
    if not maxima:
        return
    used = reader.used_in_run(run.id)
    for name in LimitName:
        if name.value not in maxima:
            continue
        is_time = name is LimitName.DURATION
        if is_time or name in COUNTED:
            amount = run.worked_ms if is_time else used.amount(name)
            yield RunLimit(name=name, maximum=maxima[name.value], used=amount)


class RunLimitRow(TypedDict):
    """What all jobs of a run may use together, and have used."""

    name: LimitName
    maximum: int
    used: int


class PhaseWaitRow(WaitRow):
    """What a phase of a run waits for."""

    phase: str


class AttemptRow(TypedDict):
    """One attempt of a phase."""

    attempt: int
    status: NodeStatus
    job_id: str | None
    child_run_id: str | None
    began_at: str
    ended_at: str | None
    error: str | None


class NodeRow(TypedDict):
    """A phase of a run, or one item, iteration or command of it, with the nodes inside it."""

    path: str
    status: str
    kind: str
    does: str | None
    label: str | None
    total: int | None
    depends_on: list[str]
    iteration: int | None
    item: int | None
    attempt: int
    began_at: str | None
    ended_at: str | None
    duration_seconds: float | None
    cost_usd: float
    job_id: str | None
    job_status: JobStatus | None
    lost: LostRow | None
    child_run_id: str | None
    inbox_item_id: str | None
    exit_code: int | None
    error: str | None
    skip_cause: SkipCause | None
    message: str | None
    kept_from: str | None
    waits_for: WaitRow | None
    attempts: list[AttemptRow]
    nodes: list[NodeRow]


class RunDocument(RunRow):
    """One run with everything around it but the outputs of its phases."""

    inputs: dict[str, Any]
    trigger: dict[str, Any]
    scratch: dict[str, Any]
    limits: list[RunLimitRow]
    waits_for: list[PhaseWaitRow]
    child_runs: list[str]
    nodes: list[NodeRow]


def run_document(view: RunView, now: datetime, *, spell: SpellStep | None = None) -> RunDocument:
    """Return everything about a run but the outputs of its phases; `spell` writes the steps that continue it."""
    return {
        **run_row(view.run, now),
        "cost_usd": to_usd(view.cost),
        "inputs": dict(view.inputs),
        "trigger": dict(view.trigger),
        "scratch": dict(view.scratch),
        "limits": [
            {"name": one.name, "maximum": one.maximum, "used": one.used} for one in view.limits
        ],
        "waits_for": [{"phase": node.path, **wait_row(wait, spell)} for node, wait in view.waits],
        "child_runs": [child.id for child in view.children],
        "nodes": [node_row(node, spell) for node in view.nodes],
    }


def node_row(view: NodeView, spell: SpellStep | None = None) -> NodeRow:
    """Return a node as plain data, with the nodes inside it."""
    node, phase = view.node, view.phase
    return {
        "path": view.path,
        "status": view.status,
        "kind": view.kind,
        "does": view.does or None,
        "label": None if phase is None else phase.label,
        "total": view.total,
        "depends_on": [] if phase is None else list(phase.depends_on),
        "iteration": None if node is None or node.iteration == NO_ITERATION else node.iteration,
        "item": None if node is None or node.item == NO_ITEM else node.item,
        "attempt": 0 if node is None else node.attempt,
        "began_at": None if node is None else timestamp(node.created_at),
        "ended_at": None if node is None else timestamp(node.ended_at),
        "duration_seconds": seconds_of(view.took),
        "cost_usd": to_usd(view.cost),
        "job_id": None if node is None else node.job_id,
        "job_status": None if view.job is None else view.job.status,
        "lost": None if view.job is None else lost_row(view.job.lost),
        "child_run_id": None if node is None else node.child_run_id,
        "inbox_item_id": None if node is None else node.item_id,
        "exit_code": None if node is None else node.exit_code,
        "error": None if node is None else node.error,
        "skip_cause": None if node is None else node.cause,
        "message": None if node is None else node.message,
        "kept_from": None if node is None else node.kept_from,
        "waits_for": None if view.wait is None else wait_row(view.wait, spell),
        "attempts": [_attempt_row(one) for one in view.attempts] if len(view.attempts) > 1 else [],
        "nodes": [node_row(inner, spell) for inner in view.inside],
    }


def _attempt_row(node: WorkflowNode) -> AttemptRow:
    return {
        "attempt": node.attempt,
        "status": node.status,
        "job_id": node.job_id,
        "child_run_id": node.child_run_id,
        "began_at": timestamp(node.created_at),
        "ended_at": timestamp(node.ended_at),
        "error": node.error,
    }
