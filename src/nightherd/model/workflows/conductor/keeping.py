"""What a new run keeps of an earlier one: the phases that are done, and items that are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from nightherd.model.workflows.definition import Phase, WorkflowDefinition
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION, NodeKind, NodeStatus, SkipCause
from nightherd.model.workflows.rows import WorkflowNode, WorkflowNodeTexts, node_id
from nightherd.model.workflows.run import RunId


def kept_phases(
    definition: WorkflowDefinition,
    nodes: Collection[WorkflowNode],
    *,
    without: str | None = None,
) -> list[str]:
    """Return the phases of a workflow whose work a new run keeps.

    They are those that are done, if everything they depend on is kept too; not `without`, nor what depends on it.
    """
    latest = {node.path: node for node in nodes if node.is_top_level}
    kept: dict[str, None] = {}
    for phase in _in_order(definition.phases):
        node = latest.get(phase.name)
        is_wanted = phase.name != without and all(name in kept for name in phase.depends_on)
        if is_wanted and node is not None and _is_done(phase, node):
            kept[phase.name] = None
    return list(kept)


def _is_done(phase: Phase, node: WorkflowNode) -> bool:
    match node.status:
        case NodeStatus.SUCCEEDED:
            return True
        case NodeStatus.FAILED:
            return phase.tolerates_failure
        case NodeStatus.SKIPPED:
            return node.cause is not SkipCause.FAILED
        case _:
            return False


def _in_order(phases: tuple[Phase, ...]) -> Iterator[Phase]:
    """The phases so that each comes after those it depends on."""
    waiting, done = list(phases), set[str]()
    while waiting:
        ready = [phase for phase in waiting if done.issuperset(phase.depends_on)]
        if not ready:
            return
        for phase in ready:
            done.add(phase.name)
            waiting.remove(phase)
            yield phase


def kept_nodes(
    run_id: RunId,
    definition: WorkflowDefinition,
    nodes: Collection[WorkflowNode],
    texts: Mapping[str, WorkflowNodeTexts],
    *,
    without: str | None = None,
) -> tuple[tuple[WorkflowNode, ...], tuple[WorkflowNodeTexts, ...]]:
    """Return the nodes that a new run begins with, and their texts.

    Of a list of items that failed in part, the items that succeeded are kept, and the list as it was.
    """
    whole = set(kept_phases(definition, nodes, without=without))
    found = [node for node in nodes if _top(node) in whole]
    for phase in definition.phases:
        is_open = phase.name not in whole and phase.name != without
        if is_open and phase.for_each is not None and whole.issuperset(phase.depends_on):
            found += _kept_items(phase, nodes)
    rows = tuple(
        replace(
            node,
            id=node_id(run_id, node.key),
            run_id=run_id,
            kept_from=node.kept_from or node.run_id,
        )
        for node in sorted(found, key=lambda node: node.number)
    )
    kept_texts = tuple(
        replace(texts[node.id], node_id=node_id(run_id, node.key))
        for node in found
        if node.id in texts
    )
    return rows, kept_texts


def _kept_items(phase: Phase, nodes: Collection[WorkflowNode]) -> Iterator[WorkflowNode]:
    """The list of a `for_each`, open again, with the items that succeeded and everything in them."""
    group = next((one for one in nodes if one.is_top_level and one.path == phase.name), None)
    if group is None or group.kind is not NodeKind.GROUP or group.status is not NodeStatus.FAILED:
        return
    done = {
        node.item
        for node in nodes
        if node.path == phase.name
        and node.item != NO_ITEM
        and node.iteration == NO_ITERATION
        and node.status is NodeStatus.SUCCEEDED
    }
    yield replace(
        group, status=NodeStatus.RUNNING, ended_at=None, error=None, is_final=False, due_at=None
    )
    for node in nodes:
        if _item_of(phase, node) in done:
            yield node


def _item_of(phase: Phase, node: WorkflowNode) -> int | None:
    """Which item of the phase a node is of; None when it is of none."""
    if node.path in (phase.name, f"{phase.name}:until") and node.item != NO_ITEM:
        return node.item
    prefix = f"{phase.name}["
    if node.path.startswith(prefix):
        return int(node.path[len(prefix) :].partition("]")[0])
    return None


def _top(node: WorkflowNode) -> str:
    """The phase of the workflow that a node is in."""
    return node.path.partition("/")[0].partition("[")[0].partition(":")[0]
