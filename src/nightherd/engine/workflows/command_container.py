"""The container of a command: like that of an agent of its run, so that what an agent wrote runs where the agent did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from nightherd.engine.workflows.run_context import RunContext
from nightherd.errors import WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.workflows.command_place import agents_near, asked_place
from nightherd.model.workflows.conductor.pinned import PinnedBody, read_pinned
from nightherd.model.workflows.node import NodeKey
from nightherd.model.workflows.rows import PinnedWorkflow, WorkflowNode
from nightherd.model.workflows.run import RunId

FindPinned = Callable[[str, RunContext], PinnedWorkflow | None]
"""Returns a pinned workflow by its hash."""


def model_agent(
    pinned: PinnedWorkflow, node: WorkflowNode, context: RunContext, find_pinned: FindPinned
) -> Agent | None:
    """Return the agent in a container like whose the command runs; None for a command on this machine.

    `WorkspaceError` where that cannot be known any more, or the container is not there.
    """
    body = read_pinned(pinned.body)
    asked = asked_place(body.definition, node.key)
    if asked is False:
        return None
    if isinstance(asked, str):
        agent = context.agents.get(asked)
        if agent is None or agent.container is None:
            what = "is not in the fleet" if agent is None else "has no container"
            raise WorkspaceError(
                f"the command is to run in a container like that of agent {asked!r}, which {what}",
                hint="put that right in the fleet file; nothing was run on this machine instead",
            )
        return agent
    for name, was_contained in _agents_of_run(body, node, context, find_pinned):
        agent = context.agents.get(name)
        if agent is not None and agent.container is not None:
            return agent
        if agent is None and was_contained:
            raise WorkspaceError(
                f"the command is to run in a container like that of agent {name!r}, which is not in the fleet any more",
                hint="declare or accept the agent again; nothing was run on this machine instead",
            )
    if asked:
        raise WorkspaceError(
            "the command is to run in a container, and no agent of its run has one",
            hint="enable docker for one of them, or leave `container` out",
        )
    return None


def _agents_of_run(
    body: PinnedBody, node: WorkflowNode, context: RunContext, find_pinned: FindPinned
) -> Iterator[tuple[str, bool]]:
    """Yield the agents of the run, the nearest first, then those of the runs above it; whether each began in a container."""
    key, run_id = node.key, node.run_id
    while True:
        for name in agents_near(body.definition, key):
            known = body.agents.get(name)
            yield name, known is not None and known.is_contained
        above = _above(run_id, context, find_pinned)
        if above is None:
            return
        body, key, run_id = above


def _above(
    run_id: RunId, context: RunContext, find_pinned: FindPinned
) -> tuple[PinnedBody, NodeKey, RunId] | None:
    run = context.reader.find_run(run_id)
    if run is None or run.parent_run_id is None or run.parent_node_id is None:
        return None
    parent = context.reader.find_run(run.parent_run_id)
    node = context.reader.find_node(run.parent_node_id)
    pinned = None if parent is None else find_pinned(parent.definition_hash, context)
    if parent is None or node is None or pinned is None:
        return None
    return read_pinned(pinned.body), node.key, parent.id


def in_container(commands: Agent, model: Agent) -> Agent:
    """Return the agent of commands with a container of its own, on the terms of the other one's."""
    container = model.container
    assert container is not None  # noqa: S101 (asked by the caller)
    # Each command has a session of its own: none would use a container that is kept.
    container = replace(container, is_ephemeral=True)
    return replace(commands, container=container, add_dirs=model.add_dirs)
