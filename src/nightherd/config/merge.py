"""Merging layers: mappings key by key, everything else replaced. Each value keeps the place it came from."""

from __future__ import annotations

from nightherd.config.node import Entry, MappingNode, Node


def merge(base: MappingNode | None, top: MappingNode | None) -> MappingNode | None:
    """`top` laid over `base`; None where there is nothing."""
    if base is None or top is None:
        return base if top is None else top
    return merge_mappings(base, top)


def merge_mappings(base: MappingNode, top: MappingNode) -> MappingNode:
    """`top` laid over `base`, keys in the order they were first given."""
    entries = dict(base.entries)
    for key, entry in top.entries.items():
        below = entries.get(key)
        entries[key] = (
            entry if below is None else Entry(entry.key, merge_values(below.value, entry.value))
        )
    return MappingNode(top.spot, entries)


def merge_values(base: Node, top: Node) -> Node:
    """Two mappings are merged; of anything else the upper one counts."""
    if isinstance(base, MappingNode) and isinstance(top, MappingNode):
        return merge_mappings(base, top)
    return top
