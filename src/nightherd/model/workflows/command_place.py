"""Where the commands of a workflow run: on this machine, or in a container like that of an agent."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.errors import InvalidValueError
from nightherd.model.workflows.definition import (
    AgentAction,
    CommandAction,
    Phase,
    WorkflowAction,
    WorkflowDefinition,
    every_phase,
)
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import UNTIL, NodeKey

CommandPlace = str | bool | None
"""An agent, in a container like whose it runs; True for any container, False for this machine, None for the default."""


def asked_place(definition: WorkflowDefinition, key: NodeKey) -> CommandPlace:
    """Return what the file says about the command of this node."""
    phase = locate(definition.phases, key).phase
    if key.path.endswith(UNTIL):
        command = None if phase.loop is None else phase.loop.until_command
        return None if command is None else command.container
    return phase.action.container if isinstance(phase.action, CommandAction) else None


def agents_near(definition: WorkflowDefinition, key: NodeKey) -> Iterator[str]:
    """Yield the agents of a workflow: those up to the end of the node's phase, the last one first; then those after it.

    The order is that of the file; the phases of sub-workflows stand where the sub-workflow is run.
    """
    try:
        here = locate(definition.phases, key).phase
    except InvalidValueError:
        here = None
    inside = set() if here is None else {id(one) for one in every_phase((here,))}
    before: list[str] = []
    after: list[str] = []
    is_reached = False
    for phase in every_phase(definition.phases):
        is_inside = id(phase) in inside
        (after if is_reached and not is_inside else before).extend(_agents(phase))
        is_reached = is_reached or is_inside
    yield from dict.fromkeys((*reversed(before), *after))


def _agents(phase: Phase) -> Iterator[str]:
    match phase.action:
        case AgentAction(agent=agent):
            yield agent
        case WorkflowAction(definition=inner) if inner is not None:
            for one in every_phase(inner.phases):
                yield from _agents(one)
        case _:
            pass
