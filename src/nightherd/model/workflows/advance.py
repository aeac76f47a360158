"""The conductor's decision: everything that follows from the nodes of a run, at once.

`advance` is called in the transaction that records that a node ended, that a run began or that it is cancelled. It
reads no clock and rolls no dice: called again on the same nodes it decides the same, and called on the nodes that its
steps leave it decides nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.instance import locate, top_level
from nightherd.model.workflows.node import NodeKey, NodeKind, Nodes
from nightherd.model.workflows.progress import Progress, message_of_end
from nightherd.model.workflows.records import Outputs, Records
from nightherd.model.workflows.rules import Standing, block_end
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunFacts, RunStatus
from nightherd.model.workflows.scope import Context
from nightherd.model.workflows.steps import Cancel, Step
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.model.workflows.walk import Walk, is_retried


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What follows: the steps in their order, and the status of the run after them."""

    steps: tuple[Step, ...] = ()
    run_status: RunStatus
    error: str | None = None
    """Why the run failed or was cancelled."""


def advance(
    definition: WorkflowDefinition,
    inputs: Mapping[str, Any],
    trigger: RunTrigger,
    run: RunFacts,
    nodes: Nodes,
    outputs: Outputs,
) -> Decision:
    """Return everything that follows from `nodes`. `outputs` gives the output of a node that has ended."""
    if RUN_LIFECYCLE.is_terminal(run.status) or run.status is RunStatus.QUEUED:
        return Decision(run_status=run.status)
    if run.is_cancelling:
        return _cancel(nodes)
    context = Context(
        definition=definition,
        inputs=dict(inputs),
        trigger=trigger,
        run=run,
        records=Records(nodes=dict(nodes), outputs=outputs),
    )
    progress = Progress(context=context)
    phases = definition.phases
    standings = Walk(progress=progress).block(phases, top_level(phases))
    steps = tuple(progress.steps)
    if Standing.OPEN in standings.values():
        is_paused = progress.has_paused and not progress.has_running
        status = RunStatus.PAUSED if is_paused else RunStatus.RUNNING
        return Decision(steps=steps, run_status=status)
    end = block_end(phases, standings)
    places = {place.phase.name: place for place in top_level(phases)}
    error = progress.reason(places[name] for name in end.because_of)
    return Decision(steps=steps, run_status=RunStatus(end.status.value), error=error)


def _cancel(nodes: Nodes) -> Decision:
    """End what waits for people and times at once; end groups when the last job has ended."""
    open_nodes = [node for _, node in sorted(nodes.items()) if not node.has_ended]
    waits = [node for node in open_nodes if node.kind in (NodeKind.GATE, NodeKind.WAIT)]
    groups = [node for node in open_nodes if node.kind is NodeKind.GROUP]
    is_over = len(waits) + len(groups) == len(open_nodes)
    ended = [*waits, *groups] if is_over else waits
    steps = tuple(Cancel(key=node.key, reason="the run was cancelled") for node in ended)
    status = RunStatus.CANCELLED if is_over else RunStatus.RUNNING
    return Decision(steps=steps, run_status=status)


def end_message(
    definition: WorkflowDefinition,
    inputs: Mapping[str, Any],
    trigger: RunTrigger,
    run: RunFacts,
    nodes: Nodes,
    outputs: Outputs,
    key: NodeKey,
) -> str | None:
    """Return what people are told about a phase whose job, gate, wait or child run has ended.

    None for an item or iteration, and for an attempt that another one follows: the phase has not ended.
    """
    instance = locate(definition.phases, key)
    records = Records(nodes=dict(nodes), outputs=outputs)
    node = records.node(instance)
    if not instance.is_phase or node is None or node.key != key or is_retried(instance, node):
        return None
    context = Context(
        definition=definition, inputs=dict(inputs), trigger=trigger, run=run, records=records
    )
    return message_of_end(context, instance, node.status)
