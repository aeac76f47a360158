"""Which phases keep their session: those that another phase, or the next iteration of a loop, continues."""

from __future__ import annotations

from nightherd.model.workflows.definition import AgentAction, WorkflowDefinition, every_phase
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import NodeKey


def keeps_session(definition: WorkflowDefinition, key: NodeKey) -> bool:
    """Return whether something may continue the session of that node."""
    instance = locate(definition.phases, key)
    loops = (place.phase.loop for place in instance.around())
    if any(loop is not None and not loop.fresh_context for loop in loops):
        return True
    name = instance.phase.name
    actions = (phase.action for phase in every_phase(definition.phases))
    return any(isinstance(action, AgentAction) and action.session == name for action in actions)
