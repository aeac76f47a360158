"""The walk through a run: from the first phase to the last, doing at once everything that can be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nightherd.model.workflows.begin import CannotBeginError, begin, condition, items
from nightherd.model.workflows.definition import MOST_ITEMS, BlockAction, ForEach, Loop, Phase
from nightherd.model.workflows.expressions.types import described
from nightherd.model.workflows.graph import in_order
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.loops import after_iteration
from nightherd.model.workflows.node import Node, NodeKind, NodeStatus, SkipCause
from nightherd.model.workflows.progress import Progress
from nightherd.model.workflows.rules import (
    Pending,
    Skipped,
    Standing,
    block_end,
    decide,
    standing_of,
)
from nightherd.model.workflows.scope import At
from nightherd.model.workflows.steps import Fail


class Walk(msgspec.Struct):
    """Advances a run. Every phase is visited after those it depends on, so one walk finds all that follows."""

    progress: Progress
    orders: dict[int, tuple[Phase, ...]] = msgspec.field(default_factory=dict)
    """The phases of each block in the order of their dependencies."""

    def block(
        self, phases: tuple[Phase, ...], instances: Iterable[Instance]
    ) -> dict[str, Standing]:
        """Advance the phases of a block, and return how each stands."""
        if id(phases) not in self.orders:
            self.orders[id(phases)] = in_order(phases)
        places = {instance.phase.name: instance for instance in instances}
        standings: dict[str, Standing] = {}
        for phase in self.orders[id(phases)]:
            needed = {name: standings[name] for name in phase.depends_on}
            standings[phase.name] = self.phase(places[phase.name], needed)
        return standings

    def phase(self, instance: Instance, needed: Mapping[str, Standing]) -> Standing:
        """Advance a phase that has begun, or begin it."""
        node = self.progress.records.node(instance)
        if node is None:
            node = self.start(instance, needed)
        elif not self.is_settled(instance, node):
            node = self.run(instance)
        return Standing.OPEN if node is None else standing_of(instance.phase, node)

    def is_settled(self, instance: Instance, node: Node) -> bool:
        """Return whether nothing follows from a node: it has ended, or something else will end it."""
        if node.has_ended:
            return not is_retried(instance, node)
        self.progress.noted(node)
        return node.kind is not NodeKind.GROUP

    def start(self, instance: Instance, needed: Mapping[str, Standing]) -> Node | None:
        """Begin a phase when its rule and its condition hold; None while that is open."""
        phase = instance.phase
        match decide(phase.trigger_rule, needed):
            case Pending():
                return None
            case Skipped(cause=cause, reason=reason):
                return self.progress.skip(instance, cause, reason)
            case _:
                pass
        if phase.when is not None:
            try:
                holds = condition(self.progress.context, instance, At.START, "when", phase.when)
            except CannotBeginError as error:
                return self.progress.fail(instance, str(error))
            if not holds:
                reason = f"its condition is false: {phase.when}"
                return self.progress.skip(instance, SkipCause.CONDITION, reason)
        return self.run(instance)

    def run(self, instance: Instance) -> Node:
        """Begin or advance what a phase consists of."""
        for_each = instance.phase.for_each
        return self.item(instance) if for_each is None else self.each(instance, for_each)

    def item(self, instance: Instance) -> Node:
        """Begin or advance a phase without `for_each`, or one item of it."""
        loop = instance.phase.loop
        return self.action(instance) if loop is None else self.loop(instance, loop)

    def each(self, instance: Instance, for_each: ForEach) -> Node:
        """Advance a `for_each`: as many items at once as it allows, in their order."""
        nodes = self.progress.records.nodes
        node = nodes.get(instance.key()) or self.begin_each(instance, for_each)
        if node.has_ended:
            return node
        open_count = 0
        ended: list[tuple[Instance, Node]] = []
        for number in range(len(node.items or ())):
            place = instance.of_item(number)
            inner = self.progress.records.node(place)
            if inner is None and open_count >= for_each.max_parallel:
                return node
            if inner is None or not self.is_settled(place, inner):
                inner = self.item(place)
            if inner.has_ended:
                ended.append((place, inner))
            else:
                open_count += 1
        return node if open_count else self.end_each(instance, ended)

    def begin_each(self, instance: Instance, for_each: ForEach) -> Node:
        """Evaluate the items once, and keep them."""
        progress = self.progress
        try:
            value = items(progress.context, instance, for_each.items)
        except CannotBeginError as error:
            return progress.fail(instance, str(error))
        if not isinstance(value, list | tuple):
            return progress.fail(instance, f"for_each: expected a list, got {described(value)}")
        if len(value) > MOST_ITEMS:
            return progress.fail(
                instance, f"for_each: {len(value):,} items; at most {MOST_ITEMS:,}"
            )
        return progress.group(instance, tuple(value))

    def end_each(self, instance: Instance, ended: list[tuple[Instance, Node]]) -> Node:
        """End a `for_each` whose items have all ended."""
        progress = self.progress
        failed = [place for place, node in ended if node.status is NodeStatus.FAILED]
        if failed:
            reason = progress.reason(failed)
            return progress.fail(instance, f"{len(failed)} of {len(ended)} items failed: {reason}")
        if any(node.status is NodeStatus.CANCELLED for _, node in ended):
            return progress.cancel(instance, "an item was cancelled")
        return progress.succeed(instance)

    def loop(self, instance: Instance, loop: Loop) -> Node:
        """Advance a loop: one iteration after the other, until its condition is met."""
        progress = self.progress
        node = progress.records.nodes.get(instance.key()) or progress.group(instance)
        if node.has_ended:
            return node
        current = progress.records.last_iteration(instance) or instance.of_iteration(1)
        while True:
            body = self.action(current)
            if not body.has_ended:
                return node
            end = after_iteration(progress, instance, current, body, loop)
            if end is not None:
                return end
            current = instance.of_iteration(current.iteration + 1)

    def action(self, instance: Instance) -> Node:
        """Begin or advance one instance of what a phase does."""
        if isinstance(instance.phase.action, BlockAction):
            return self.inside(instance)
        progress = self.progress
        node = progress.records.node(instance)
        if node is None:
            node = self.begin(instance, 1, progress.message_of_start(instance))
        elif is_retried(instance, node):
            node = self.begin(instance, node.key.attempt + 1, None)
        return progress.noted(node)

    def begin(self, instance: Instance, attempt: int, message: str | None) -> Node:
        """Begin an attempt; one that cannot begin has failed."""
        step = begin(self.progress.context, instance, attempt, message)
        if isinstance(step, Fail):
            return self.progress.end(instance, step)
        return self.progress.take(step)

    def inside(self, instance: Instance) -> Node:
        """Advance the phases inside a block, and end it with the last of them."""
        progress = self.progress
        node = progress.records.nodes.get(instance.key()) or progress.group(instance)
        if node.has_ended:
            return node
        phases = instance.phase.block
        standings = self.block(phases, instance.inside())
        if Standing.OPEN in standings.values():
            return node
        end = block_end(phases, standings)
        inner = {place.phase.name: place for place in instance.inside()}
        reason = progress.reason(inner[name] for name in end.because_of) or ""
        match end.status:
            case NodeStatus.FAILED:
                return progress.fail(instance, reason)
            case NodeStatus.CANCELLED:
                return progress.cancel(instance, reason)
            case _:
                return progress.succeed(instance)


def is_retried(instance: Instance, node: Node) -> bool:
    """Return whether the latest attempt failed and another one follows."""
    is_failed = node.status is NodeStatus.FAILED and not node.is_final
    return is_failed and node.key.attempt <= instance.phase.retries
