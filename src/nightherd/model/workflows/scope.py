"""The values that an expression of a run sees at its place: what `frame.py` knows by type, here with values.

Only what the expression uses is read: an output that nothing asks for is never loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.workflows.definition import (
    CommandAction,
    GateAction,
    Phase,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.expressions.checker import check_tree
from nightherd.model.workflows.expressions.evaluate import Scope
from nightherd.model.workflows.expressions.parser import parse
from nightherd.model.workflows.expressions.tree import Mistake, Path, paths_of
from nightherd.model.workflows.expressions.types import ANY, Names, Type
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.names import has_untrusted, loop_names, phase_names, root_types
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION
from nightherd.model.workflows.records import Records
from nightherd.model.workflows.run import RunFacts
from nightherd.model.workflows.triggers import (
    TRIGGER_NAMES,
    RunTrigger,
    input_names,
    trigger_values,
)

PAYLOAD = ("trigger", "payload")
SENT = ("id", "actor", "repo", "channel")
"""Texts of the trigger that a webhook or chat takes from its message."""
Prefixes = frozenset[tuple[str | int, ...]]


class At(StrEnum):
    """When an expression is evaluated."""

    START = "start"
    """Before the phase: `when`, `for_each`, `on_start`."""
    BODY = "body"
    """In one item and iteration of it."""
    UNTIL = "until"
    """At the end of an iteration."""
    END = "end"
    """After the phase: `on_success`, `on_failure`."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its expressions see it."""

    definition: WorkflowDefinition
    inputs: dict[str, Any]
    trigger: RunTrigger
    run: RunFacts
    records: Records

    def scope(self, instance: Instance, at: At, paths: Iterable[Path]) -> Scope:
        """Return the values that `paths` need at that place."""
        used = [path.names for path in paths]
        phases = self.phases_used(instance, at, used)
        values: dict[str, Any] = {
            "inputs": self.inputs,
            "trigger": trigger_values(self.trigger),
            "run": self.run_values(),
            "phases": {name: self.phase_values(place, used) for name, place in phases.items()},
        }
        untrusted: set[tuple[str | int, ...]] = {PAYLOAD}
        if self.trigger.is_from_other_people:
            untrusted.update(("trigger", name) for name in SENT)
        untrusted.update(("inputs", name) for name in self.untrusted_inputs())
        for name, place in phases.items():
            parts = [("phases", name, "output", *part) for part in _untrusted_parts(place)]
            untrusted.update(parts, [("phases", name, "error")] if parts else [])
        item_owner = _owner(instance, is_item=True)
        loop_owner = _owner(instance, is_item=False)
        item_type, loop_type = None, None
        if item_owner is not None and any(names[0] == "item" for names in used):
            item_type, is_untrusted = self.item_type(item_owner)
            values["item"] = self.item(item_owner)
            untrusted |= {("item",)} if is_untrusted else set()
        if loop_owner is not None:
            loop_type = loop_names(loop_owner.phase)
            values["loop"] = self.loop_values(loop_owner, used)
            inside = _untrusted_parts(loop_owner)
            untrusted.update(("loop", "previous", *part) for part in inside)
        types = root_types(
            input_names(self.definition.inputs),
            TRIGGER_NAMES,
            {name: phase_names(place.phase) for name, place in phases.items()},
            item=item_type,
            loop=loop_type,
        )
        return Scope(names=Names(types=types), values=values, untrusted=frozenset(untrusted))

    def run_values(self) -> dict[str, Any]:
        """Return the values of the root `run`."""
        run = self.run
        return {
            "id": run.id,
            "workflow": run.workflow,
            "started_at": run.started_at,
            "attempt": run.attempt,
        }

    def untrusted_inputs(self) -> Iterable[str]:
        """Return the inputs that hold what other people wrote."""
        return (name for name in self.inputs if self.trigger.is_untrusted(name))

    def phases_used(
        self, instance: Instance, at: At, used: list[tuple[str | int, ...]]
    ) -> dict[str, Instance]:
        """Return the phases that are asked for by name, each the nearest of that name."""
        names = {str(path[1]) for path in used if path[0] == "phases" and len(path) > 1}
        places = {name: _resolve(name, instance, at) for name in sorted(names)}
        return {name: place for name, place in places.items() if place is not None}

    def phase_values(self, instance: Instance, used: list[tuple[str | int, ...]]) -> dict[str, Any]:
        """Return the values of `phases.X`, its output only where something asks for it."""
        node = self.records.node(instance)
        values: dict[str, Any] = {
            "status": None if node is None else node.status.value,
            "error": None if node is None else node.error,
        }
        name = instance.phase.name
        if any(path[:3] == ("phases", name, "output") for path in used):
            values["output"] = self.records.output(instance)
        if isinstance(instance.phase.action, CommandAction):
            values["exit_code"] = self.records.exit_code(instance)
        return values

    def item(self, owner: Instance) -> Any:
        """Return the item that an instance is for."""
        node = self.records.nodes[owner.whole.key()]
        return (node.items or ())[owner.item]

    def item_type(self, owner: Instance) -> tuple[Type, bool]:
        """Return what is known about an item, and whether other people wrote it."""
        tree = _items_tree(owner.phase)
        if tree is None:
            return ANY, True
        paths = list(paths_of(tree))
        scope = self.scope(owner.whole, At.START, paths)
        is_untrusted = any(scope.is_untrusted(path.names) for path in paths)
        return check_tree(tree, scope.names).type.item or ANY, is_untrusted

    def loop_values(self, owner: Instance, used: list[tuple[str | int, ...]]) -> dict[str, Any]:
        """Return the values of the root `loop`."""
        values: dict[str, Any] = {"iteration": owner.iteration, "previous": None}
        before = owner.before()
        if before is not None and any(path[:2] == ("loop", "previous") for path in used):
            values["previous"] = self.records.output(before)
        return values


def _items_tree(phase: Phase) -> Any:
    tree = parse(phase.for_each.items) if phase.for_each is not None else None
    return None if isinstance(tree, Mistake) else tree


def _resolve(name: str, instance: Instance, at: At) -> Instance | None:
    """Return the nearest phase of that name: inside, the phase itself, beside it, around it."""
    if at is At.UNTIL:
        for inner in instance.inside():
            if inner.phase.name == name:
                return inner
    if at in (At.UNTIL, At.END) and instance.phase.name == name:
        return instance
    for around in instance.around():
        sibling = around.sibling(name)
        if sibling is not None:
            return sibling
    return None


def _untrusted_parts(instance: Instance) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a phase's output that hold what other people wrote; a gate hands on what it shows."""
    phase = instance.phase
    if phase.untrusted or (isinstance(phase.action, WorkflowAction) and has_untrusted(phase)):
        yield ()
    elif isinstance(phase.action, GateAction) and phase.action.artifact is not None:
        shown = _resolve(phase.action.artifact.phase or "", instance, At.BODY)
        if shown is not None and any(True for _ in _untrusted_parts(shown)):
            yield () if phase.for_each is not None else ("artifact",)
    for inner in instance.inside():
        for part in _untrusted_parts(inner):
            yield () if phase.for_each is not None else (inner.phase.name, *part)


def _owner(instance: Instance, *, is_item: bool) -> Instance | None:
    """Return the nearest instance that is one item, or one iteration, of its phase."""
    for around in instance.around():
        has_one = around.item != NO_ITEM if is_item else around.iteration != NO_ITERATION
        if has_one:
            return around
    return None
