"""Progress: the steps that one decision takes, each done at once on the nodes it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.workflows.begin import message_text
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.node import Node, NodeKind, NodeStatus, SkipCause
from nightherd.model.workflows.records import Records
from nightherd.model.workflows.scope import At, Context
from nightherd.model.workflows.steps import (
    Cancel,
    Fail,
    Skip,
    StartGroup,
    Step,
    Succeed,
    effect_of,
)


class Progress(msgspec.Struct):
    """Keeps steps, and goes on as if they were done."""

    context: Context
    steps: list[Step] = msgspec.field(default_factory=list)
    has_running: bool = False
    has_paused: bool = False

    @property
    def records(self) -> Records:
        """The nodes, with all steps done."""
        return self.context.records

    def take(self, step: Step) -> Node:
        """Keep a step, and return the node as it leaves it."""
        node = effect_of(step, self.records.nodes)
        self.steps.append(step)
        self.records.nodes[node.key] = node
        return node

    def noted(self, node: Node) -> Node:
        """Note whether anything runs, or only waits for people and times."""
        if node.status is NodeStatus.PAUSED:
            self.has_paused = True
        elif not node.has_ended and node.kind is not NodeKind.GROUP:
            self.has_running = True
        return node

    def skip(self, instance: Instance, cause: SkipCause, reason: str) -> Node:
        """Do not run a phase."""
        return self.take(Skip(key=instance.key(), phase=instance.phase, cause=cause, reason=reason))

    def group(self, instance: Instance, items: tuple[Any, ...] | None = None) -> Node:
        """Begin a block, a loop, or a phase with `for_each`."""
        message = self.message_of_start(instance)
        phase = instance.phase
        return self.take(StartGroup(key=instance.key(), phase=phase, items=items, message=message))

    def succeed(self, instance: Instance) -> Node:
        """End a group well."""
        return self.end(instance, Succeed(key=instance.key(), phase=instance.phase))

    def fail(self, instance: Instance, error: str) -> Node:
        """End a group with an error, or a phase that cannot begin."""
        return self.end(instance, Fail(key=instance.key(), phase=instance.phase, error=error))

    def cancel(self, instance: Instance, reason: str) -> Node:
        """End a group because something inside it was cancelled."""
        return self.take(Cancel(key=instance.key(), reason=reason))

    def end(self, instance: Instance, step: Succeed | Fail) -> Node:
        """Keep a step that ends a phase or a part of one, with what people are told about the phase."""
        # The message may use the phase's own output, so it is made after the end.
        node = self.take(step)
        if instance.is_phase:
            message = message_of_end(self.context, instance, node.status)
            self.steps[-1] = replace(step, message=message)
        return node

    def message_of_start(self, instance: Instance) -> str | None:
        """Return what people are told when a phase begins."""
        if not instance.is_phase:
            return None
        return message_text(self.context, instance, At.START, instance.phase.messages.on_start)

    def reason(self, instances: Iterable[Instance]) -> str | None:
        """Return why phases failed, in words: the first one's error, and how many more there are."""
        failed = list(instances)
        if not failed:
            return None
        node = self.records.node(failed[0])
        is_cancelled = node is not None and node.status is NodeStatus.CANCELLED
        word = "was cancelled" if is_cancelled else "failed"
        error = f": {node.error}" if node is not None and node.error else ""
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return f"{failed[0].key()} {word}{error}{more}"


def message_of_end(context: Context, instance: Instance, status: NodeStatus) -> str | None:
    """Return what people are told when a phase ends."""
    messages = instance.phase.messages
    match status:
        case NodeStatus.SUCCEEDED:
            return message_text(context, instance, At.END, messages.on_success)
        case NodeStatus.FAILED:
            return message_text(context, instance, At.END, messages.on_failure)
        case _:
            return None
