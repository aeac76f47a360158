"""Nodes: what a YAML file says, each value with the place it was written at.

Nodes are immutable and shared freely: an alias, a merged default and a diamond's sub-fleet point at the
same node, so every value keeps its own origin however it came to be where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.model.problem import Place, Problem, Severity

SHOWN_LINE_LIMIT = 400
"""Source lines longer than this are not quoted in problems."""


class Source(msgspec.Struct, frozen=True, eq=False):
    """A file that was read: its absolute path, and its lines as the YAML parser counts them."""

    path: str
    lines: tuple[str, ...]

    def line(self, number: int) -> str | None:
        """Line `number` (from 1), or None when there is none worth quoting."""
        if not 1 <= number <= len(self.lines):
            return None
        text = self.lines[number - 1]
        return text if len(text) <= SHOWN_LINE_LIMIT else None


class Spot(msgspec.Struct, frozen=True, eq=False):
    """Where a node begins, counted from 1, and how many characters of that line it takes."""

    source: Source
    line: int
    column: int
    width: int = 1


class ScalarNode(msgspec.Struct, frozen=True, eq=False):
    """One text. `plain` means written without quotes, so its type follows from its spelling.

    `written` is the text as the file has it, when variables were filled in; `secret` says that a value of
    the environment is in `text`, which is then never shown.
    """

    spot: Spot
    text: str
    plain: bool
    written: str | None = None
    secret: bool = False

    @property
    def shown(self) -> str:
        """The text for people: what came out of the environment is shown as its variable."""
        return self.written if self.secret and self.written is not None else self.text


class SequenceNode(msgspec.Struct, frozen=True, eq=False):
    """A list."""

    spot: Spot
    items: tuple[Node, ...]


class Entry(msgspec.Struct, frozen=True, eq=False):
    """One key of a mapping, as it was written, and its value."""

    key: ScalarNode
    value: Node


class MappingNode(msgspec.Struct, frozen=True, eq=False):
    """A mapping; `entries` is never changed after it was built."""

    spot: Spot
    entries: dict[str, Entry]

    def get(self, key: str) -> Node | None:
        """The value of `key`, or None."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value

    def __iter__(self) -> Iterator[tuple[str, Node]]:
        return ((key, entry.value) for key, entry in self.entries.items())


Node = ScalarNode | SequenceNode | MappingNode


def with_entry(
    mapping: MappingNode, key: str, value: Node, *, at: ScalarNode | None = None
) -> MappingNode:
    """`mapping` with `key` set to `value`, in its old position when it had the key."""
    old = mapping.entries.get(key)
    key_node = at or (old.key if old is not None else None)
    if key_node is None:
        key_node = ScalarNode(value.spot, key, True)
    return MappingNode(mapping.spot, {**mapping.entries, key: Entry(key_node, value)})


def text_of(node: Node | None) -> str | None:
    """The text of a scalar, or None for anything else."""
    return node.text if isinstance(node, ScalarNode) else None


def place_of(spot: Spot) -> Place:
    """The spot as the place a problem names."""
    return Place(file=spot.source.path, line=spot.line, column=spot.column)


def problem_at(
    where: Node | Spot,
    message: str,
    *,
    path: str = "",
    hint: str | None = None,
    severity: Severity = Severity.ERROR,
) -> Problem:
    """A problem located at `where`, with its source line."""
    spot = where if isinstance(where, Spot) else where.spot
    return Problem(
        place=place_of(spot),
        message=message,
        path=path,
        hint=hint,
        text=spot.source.line(spot.line),
        width=spot.width,
        severity=severity,
    )
