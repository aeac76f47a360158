"""Reading the nodes of a run: the latest attempt, the outcome of a phase, and outputs made from what is inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from nightherd.model.workflows.definition import BlockAction
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.node import (
    NO_ITEM,
    NO_ITERATION,
    Node,
    NodeKey,
    NodeKind,
    NodeStatus,
)

Outputs = Callable[[NodeKey], Any]
"""Gives the recorded output of a node that has ended: a JSON value, None when there is none."""

WITH_OUTPUT = frozenset({NodeStatus.SUCCEEDED, NodeStatus.FAILED})


class Records(msgspec.Struct):
    """The nodes of a run, with what is decided while they are read."""

    nodes: dict[NodeKey, Node]
    outputs: Outputs

    def node(self, instance: Instance) -> Node | None:
        """Return the node of the latest attempt; None before the first."""
        node = self.nodes.get(instance.key())
        # Only a failed attempt is followed by another.
        while node is not None and node.status is NodeStatus.FAILED:
            later = self.nodes.get(instance.key(node.key.attempt + 1))
            if later is None:
                break
            node = later
        return node

    def last_iteration(self, instance: Instance) -> Instance | None:
        """Return the latest iteration of a loop that has begun."""
        latest = None
        current = instance.of_iteration(1)
        while current.key() in self.nodes:
            latest = current
            current = instance.of_iteration(current.iteration + 1)
        return latest

    def output(self, instance: Instance) -> Any:
        """Return the output: recorded, or made from the outputs of what is inside; None when there is none."""
        node = self.node(instance)
        if node is None or node.status not in WITH_OUTPUT or node.kind is NodeKind.NONE:
            return None
        phase = instance.phase
        if phase.for_each is not None and instance.item == NO_ITEM:
            count = len(node.items or ())
            return [self.output(instance.of_item(item)) for item in range(count)]
        if phase.loop is not None and instance.iteration == NO_ITERATION:
            last = self.last_iteration(instance)
            return None if last is None else self.output(last)
        if isinstance(phase.action, BlockAction):
            return {inner.phase.name: self.output(inner) for inner in instance.inside()}
        return self.outputs(node.key)

    def exit_code(self, instance: Instance) -> int | None:
        """Return the exit code of a command: of the last iteration where it loops."""
        if instance.phase.loop is not None and instance.iteration == NO_ITERATION:
            last = self.last_iteration(instance)
            return None if last is None else self.exit_code(last)
        node = self.node(instance)
        return None if node is None else node.exit_code
