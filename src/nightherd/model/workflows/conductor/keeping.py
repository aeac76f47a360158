"""What a new run keeps of an earlier one: the phases that are done, and what is done of the others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.workflows.definition import BlockAction, Phase, WorkflowDefinition
from nightherd.model.workflows.instance import Instance, top_level
from nightherd.model.workflows.node import (
    NO_ITEM,
    NO_ITERATION,
    UNTIL,
    NodeKind,
    NodeStatus,
    SkipCause,
    brackets,
)
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
    return _Keeping(nodes).whole(top_level(definition.phases), without)


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
    at: datetime,
    *,
    without: str | None = None,
) -> tuple[tuple[WorkflowNode, ...], tuple[WorkflowNodeTexts, ...]]:
    """Return the nodes that a new run begins with, and their texts.

    Of a block, a loop or a list of items that is not done, what is done inside is kept, and the list as it was.
    """
    found = list(_Keeping(nodes).block(top_level(definition.phases), without))
    rows = tuple(
        replace(
            node,
            id=node_id(run_id, node.key),
            run_id=run_id,
            kept_from=(node.kept_from or node.run_id) if node.has_ended else None,
            created_at=node.created_at if node.has_ended else at,
        )
        for node in sorted(found, key=lambda node: node.number)
    )
    kept_texts = tuple(
        replace(texts[node.id], node_id=node_id(run_id, node.key))
        for node in found
        if node.id in texts
    )
    return rows, kept_texts


class _Keeping:
    """Finds what is done among the nodes of a run."""

    def __init__(self, nodes: Collection[WorkflowNode]) -> None:
        self._nodes = {node.key: node for node in nodes}
        self._by_path: dict[str, list[WorkflowNode]] = {}
        for node in nodes:
            self._by_path.setdefault(node.path, []).append(node)
        self._paths = sorted(self._by_path)

    def whole(self, block: Iterable[Instance], without: str | None = None) -> list[str]:
        """Return the phases of a block that are kept as they are."""
        places = {instance.phase.name: instance for instance in block}
        kept: dict[str, None] = {}
        for phase in _in_order(tuple(place.phase for place in places.values())):
            node = self._latest(places[phase.name])
            is_wanted = phase.name != without and all(name in kept for name in phase.depends_on)
            if is_wanted and node is not None and _is_done(phase, node):
                kept[phase.name] = None
        return list(kept)

    def block(
        self, block: Iterable[Instance], without: str | None = None
    ) -> Iterator[WorkflowNode]:
        """Yield what is kept of the phases of a block."""
        places = {instance.phase.name: instance for instance in block}
        whole = set(self.whole(places.values(), without))
        for name, place in places.items():
            if name in whole:
                yield from self._all_of(place)
            elif name != without and whole.issuperset(place.phase.depends_on):
                yield from self._part_of(place)

    def _part_of(self, place: Instance) -> Iterator[WorkflowNode]:
        """Yield what is done inside a group that is not done. The group begins anew, but for a list: it stays as it was."""
        group = self._nodes.get(place.key())
        if group is None or group.kind is not NodeKind.GROUP:
            return
        inside = list(self._inside(place))
        if inside and place.phase.for_each is not None and place.item == NO_ITEM:
            yield WorkflowNode(
                id=group.id,
                run_id=group.run_id,
                path=group.path,
                status=NodeStatus.RUNNING,
                kind=NodeKind.GROUP,
                created_at=group.created_at,
                number=group.number,
            )
        yield from inside

    def _inside(self, place: Instance) -> Iterator[WorkflowNode]:
        phase = place.phase
        if phase.for_each is not None and place.item == NO_ITEM:
            items = {node.item for node in self._by_path[place.path]} - {NO_ITEM}
            for item in sorted(items):
                yield from self._kept(place.of_item(item))
        elif phase.loop is not None and place.iteration == NO_ITERATION:
            yield from self._iterations(place)
        elif isinstance(phase.action, BlockAction):
            yield from self.block(place.inside())

    def _iterations(self, loop: Instance) -> Iterator[WorkflowNode]:
        """Yield the iterations of a loop before the one that was not done, and what is done of that one.

        None of a loop whose iterations are all done: it did not come to its end, and begins anew.
        """
        last = loop.of_iteration(1)
        while last.of_iteration(last.iteration + 1).key() in self._nodes:
            last = last.of_iteration(last.iteration + 1)
        until = self._nodes.get(last.until_key)
        is_asked = until is not None and until.status is not NodeStatus.SUCCEEDED
        if self._has_succeeded(last) and not is_asked:
            return
        for number in range(1, last.iteration):
            yield from self._all_of(loop.of_iteration(number))
        yield from (node for node in self._kept(last) if node is not until)

    def _kept(self, place: Instance) -> Iterator[WorkflowNode]:
        """Yield an item or iteration that has succeeded, or what is done of it."""
        return self._all_of(place) if self._has_succeeded(place) else self._part_of(place)

    def _has_succeeded(self, place: Instance) -> bool:
        node = self._latest(place)
        return node is not None and node.status is NodeStatus.SUCCEEDED

    def _latest(self, place: Instance) -> WorkflowNode | None:
        """The latest attempt."""
        node = None
        while (key := place.key(1 if node is None else node.attempt + 1)) in self._nodes:
            node = self._nodes[key]
        return node

    def _all_of(self, place: Instance) -> Iterator[WorkflowNode]:
        """Yield every attempt of it, its items and iterations, and everything inside."""
        for path in (place.path, f"{place.path}{UNTIL}"):
            for node in self._by_path.get(path, ()):
                is_item = place.item in (NO_ITEM, node.item)
                if is_item and place.iteration in (NO_ITERATION, node.iteration):
                    yield node
        name = f"{place.path}{brackets(place.iteration, place.item)}"
        for opening in "/[":
            prefix = name + opening
            for path in self._paths[bisect_left(self._paths, prefix) :]:
                if not path.startswith(prefix):
                    break
                yield from self._by_path[path]
