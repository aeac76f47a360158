"""A bound on the whole: defaults and scripts count again for every agent that takes them up."""

from __future__ import annotations

from nightherd.config.node import MappingNode, Node, ScalarNode

MOST_MERGED_VALUES = 2_000_000


def count_values(node: Node) -> int:
    """How many values a node stands for, itself included."""
    if isinstance(node, ScalarNode):
        return 1
    if isinstance(node, MappingNode):
        return 1 + sum([count_values(entry.value) for entry in node.entries.values()])
    return 1 + sum([count_values(item) for item in node.items])


class Budget:
    """How many values one load may still check."""

    def __init__(self, values: int = MOST_MERGED_VALUES) -> None:
        self.left = values

    def spend(self, node: Node) -> bool:
        """Count the node in; False when it is too much."""
        if self.left >= 0:
            self.left -= count_values(node)
        return self.left >= 0
