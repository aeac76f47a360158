"""The names of expressions and their types: what `phases.X`, `item`, `loop`, `run`, `inputs` and `trigger` have."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    GateKind,
    Phase,
    WaitAction,
    WorkflowAction,
)
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    NULL,
    NUMBER,
    TEXT,
    Type,
    list_of,
    namespace_of,
    object_of,
    one_of,
    optional,
)
from nightherd.model.workflows.json_schema import type_of
from nightherd.model.workflows.node import NodeStatus

ENDED = one_of(
    NodeStatus.SUCCEEDED.value,
    NodeStatus.FAILED.value,
    NodeStatus.SKIPPED.value,
    NodeStatus.CANCELLED.value,
)
RUN_NAMES = namespace_of({"id": TEXT, "workflow": TEXT, "started_at": TEXT, "attempt": NUMBER})
"""The type of the root `run`."""
APPROVAL = object_of(
    {
        "approved": BOOLEAN,
        "by": optional(TEXT),
        "comment": optional(TEXT),
        "artifact": optional(TEXT),
    }
)
"""The output of a gate that asks for approval. `artifact` is the text as the person left it."""
REPLY = object_of({"reply": TEXT, "by": optional(TEXT), "artifact": optional(TEXT)})
"""The output of a gate that asks for a reply."""


def action_output(phase: Phase) -> Type:
    """Return the type of what one instance of the phase gives, without `for_each`."""
    match phase.action:
        case AgentAction(output=schema) | CommandAction(output=schema):
            return TEXT if schema is None else type_of(schema)
        case GateAction(gate=gate):
            return REPLY if gate is GateKind.REPLY else APPROVAL
        case WaitAction(event=event):
            return NULL if event is None else ANY
        case BlockAction(phases=phases):
            return phases_output(phases)
        case WorkflowAction(definition=definition):
            return ANY if definition is None else phases_output(definition.phases)


def phases_output(phases: tuple[Phase, ...]) -> Type:
    """Return the type of the outputs of a block or a workflow, by the names of its phases."""
    return object_of({phase.name: optional(output_type(phase)) for phase in phases})


def output_type(phase: Phase) -> Type:
    """Return the type of the phase's output when it ran: a list with `for_each`, with null for failed items."""
    value_type = action_output(phase)
    return value_type if phase.for_each is None else list_of(optional(value_type))


def phase_names(phase: Phase) -> Type:
    """Return the type of `phases.X`."""
    fields = {"status": ENDED, "output": optional(output_type(phase)), "error": optional(TEXT)}
    if isinstance(phase.action, CommandAction) and phase.for_each is None:
        fields["exit_code"] = optional(NUMBER)
    return namespace_of(fields)


def loop_names(phase: Phase) -> Type:
    """Return the type of the root `loop` inside a looped phase; `previous` is null in the first iteration."""
    previous = replace(optional(action_output(phase)), is_soft=True)
    return namespace_of({"iteration": NUMBER, "previous": previous})


def root_types(
    inputs: Type,
    trigger: Type,
    phases: Mapping[str, Type],
    *,
    item: Type | None = None,
    loop: Type | None = None,
) -> dict[str, Type]:
    """Return the types of all roots at a place; `item` and `loop` exist where they are given."""
    roots = {
        "inputs": inputs,
        "trigger": trigger,
        "phases": namespace_of(phases),
        "run": RUN_NAMES,
    }
    if item is not None:
        roots["item"] = item
    if loop is not None:
        roots["loop"] = loop
    return roots


def has_untrusted(phase: Phase) -> bool:
    """Return whether the phase's output holds what other people wrote."""
    if phase.untrusted:
        return True
    match phase.action:
        case BlockAction(phases=phases):
            return any(has_untrusted(inner) for inner in phases)
        case WorkflowAction(definition=definition) if definition is not None:
            return any(has_untrusted(inner) for inner in definition.phases)
        case _:
            return False
