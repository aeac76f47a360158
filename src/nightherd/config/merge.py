"""From nodes to the plain values that the schema checks."""

from __future__ import annotations

from typing import Any

from nightherd.config.schema.types import Filled
from nightherd.files.yaml_nodes import Entry, MappingNode, Node, Plain, ScalarNode, resolve_plain


def plain_value(node: ScalarNode) -> Plain:
    """What a scalar stands for; filled in from the environment it may be a number and a text at once."""
    if not node.plain:
        return node.text
    value = resolve_plain(node.text)
    if node.written is None or isinstance(value, str) or value is None:
        return value
    return Filled(node.text)


def to_plain(node: Node) -> Any:
    """The node as mappings, tuples and scalars."""
    if isinstance(node, ScalarNode):
        return plain_value(node)
    if isinstance(node, MappingNode):
        return {key: to_plain(entry.value) for key, entry in node.entries.items()}
    return tuple([to_plain(item) for item in node.items])


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
