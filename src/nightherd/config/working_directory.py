"""`working_directory` in its layers: fleet, defaults, agent, overrides and schedules, merged key by key."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.config.merge import merge, plain_value
from nightherd.config.schema.workspace import ISOLATED_KEYS
from nightherd.files.yaml_nodes import Entry, MappingNode, Node, ScalarNode, text_of, with_entry
from nightherd.model.workspaces.policy import WorkspaceMode

KEY = "working_directory"


def merge_agents(base: MappingNode | None, top: MappingNode | None) -> MappingNode | None:
    """`top` laid over `base`, both agents: a text and a mapping of `working_directory` are merged too."""
    merged = merge(base, top)
    if base is None or top is None or merged is None:
        return merged
    merged = _with_directory(merged, base.entries.get(KEY), top.entries.get(KEY))
    schedules, below, above = (one.get("schedules") for one in (merged, base, top))
    if not all(isinstance(one, MappingNode) for one in (schedules, below, above)):
        return merged
    return _with_schedules(
        merged, {name: (_entry(below, name), _entry(above, name)) for name, _ in _items(schedules)}
    )


def inherited_by_schedules(agent: MappingNode) -> MappingNode:
    """`agent` whose schedules have what they do not set themselves of its `working_directory`."""
    own = agent.entries.get(KEY)
    if own is None:
        return agent
    return _with_schedules(
        agent, {name: (own, _entry(agent.get("schedules"), name)) for name in _schedules_of(agent)}
    )


def _with_schedules(
    agent: MappingNode, pairs: dict[str, tuple[Entry | None, Entry | None]]
) -> MappingNode:
    """`agent` whose schedules have what both entries of each say."""
    section = agent.get("schedules")
    if not isinstance(section, MappingNode):
        return agent
    changed = {
        name: Entry(section.entries[name].key, _with_directory(schedule, below, above))
        for name, (below, above) in pairs.items()
        if below is not None and above is not None
        if isinstance(schedule := section.get(name), MappingNode)
    }
    if not changed:
        return agent
    return with_entry(agent, "schedules", MappingNode(section.spot, {**section.entries, **changed}))


def _schedules_of(agent: MappingNode) -> Iterator[str]:
    yield from (name for name, _ in _items(agent.get("schedules")))


def _items(node: Node | None) -> Iterator[tuple[str, Node]]:
    return iter(node) if isinstance(node, MappingNode) else iter(())


def _entry(schedules: Node | None, name: str) -> Entry | None:
    """The `working_directory` of a schedule."""
    schedule = schedules.get(name) if isinstance(schedules, MappingNode) else None
    return schedule.entries.get(KEY) if isinstance(schedule, MappingNode) else None


def _with_directory(node: MappingNode, below: Entry | None, above: Entry | None) -> MappingNode:
    """`node` with what both entries say, where both say something."""
    if below is None or above is None:
        return node
    merged = _merged(below.value, above.value)
    return MappingNode(node.spot, {**node.entries, KEY: Entry(above.key, merged)})


def _merged(below: Node, above: Node) -> Node:
    """Two layers as one; of another mode, what is said of the workspaces of the lower one does not count."""
    lower, upper = _as_mapping(below), _as_mapping(above)
    if lower is None or upper is None or (lower is not below and upper is not above):
        return above
    mode = text_of(upper.get("mode"))
    if mode is not None and mode != (text_of(lower.get("mode")) or WorkspaceMode.SHARED):
        dropped = ISOLATED_KEYS if mode == WorkspaceMode.SHARED else ("base",)
        kept = {key: one for key, one in lower.entries.items() if key not in dropped}
        lower = MappingNode(lower.spot, kept)
    merged = merge(lower, upper)
    assert merged is not None  # noqa: S101 (both are there)
    return merged


def _as_mapping(node: Node) -> MappingNode | None:
    """A directory's mapping; of a text, one with that root; None for what is neither."""
    if isinstance(node, MappingNode):
        return node
    if not isinstance(node, ScalarNode) or plain_value(node) is None:
        return None
    return MappingNode(node.spot, {"root": Entry(ScalarNode(node.spot, "root", True), node)})


def directories_of(agent: MappingNode) -> Iterator[tuple[str, Entry]]:
    """Every `working_directory` of an agent, and where it stands."""
    own = agent.entries.get(KEY)
    if own is not None:
        yield own.key.text, own
    for name in _schedules_of(agent):
        entry = _entry(agent.get("schedules"), name)
        if entry is not None:
            yield f"schedules.{name}.{entry.key.text}", entry
