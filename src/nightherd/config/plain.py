"""From nodes to the plain values that the schema checks."""

from __future__ import annotations

from typing import Any

from nightherd.config.node import MappingNode, Node, ScalarNode
from nightherd.config.scalar import Plain, resolve_plain
from nightherd.config.schema.types import Filled


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
