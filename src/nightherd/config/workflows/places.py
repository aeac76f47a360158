"""Where the parts of a workflow stand in its files: from a part of the definition to a line and a column."""

from __future__ import annotations

import msgspec

from nightherd.files.yaml_nodes import (
    LINE_BREAK,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
    Spot,
)
from nightherd.model.workflows.finding import DefinitionPath, Finding, PathStep

ESCAPE_LENGTHS = {"x": 2, "u": 4, "U": 8}
WHITE_ESCAPES = frozenset("ntrvfNLP_ \t")
"""What stands after a backslash for a character that counts as white space."""


class RawText(msgspec.Struct, frozen=True, eq=False):
    """A text that is a whole file."""

    source: Source
    text: str

    def spot(self, start: int, width: int) -> Spot:
        """Return where a character of the text stands."""
        lines = LINE_BREAK.split(self.text[:start])
        return Spot(self.source, len(lines), len(lines[-1]) + 1, width)


class Places(msgspec.Struct):
    """The nodes that the parts of one definition came from."""

    nodes: dict[DefinitionPath, Node | RawText]

    def put(self, path: DefinitionPath, node: Node | RawText | None) -> None:
        """Remember where a part came from."""
        if node is not None:
            self.nodes[path] = node

    def spot(self, finding: Finding) -> Spot:
        """Return the place of a finding: the nearest part that is written in the file."""
        path = finding.path
        length = len(path)
        while path[:length] not in self.nodes:
            length -= 1
        node = self.nodes[path[:length]]
        if isinstance(node, RawText):
            return node.spot(finding.start or 0, finding.width)
        # A place inside the text is in the value, also where the unknown name is that of the key.
        node = _descend(node, path[length:], finding.word if finding.start is None else "")
        if isinstance(node, ScalarNode) and finding.start is not None:
            return spot_in(node, finding.start, finding.width)
        return node.spot


def _descend(node: Node, steps: tuple[PathStep, ...], word: str) -> Node:
    """Return the node that steps lead to, as far as they go; the key itself when it is the unknown word."""
    for place, step in enumerate(steps):
        if isinstance(node, MappingNode) and str(step) in node.entries:
            entry = node.entries[str(step)]
            if word and place == len(steps) - 1 and entry.key.text == word:
                return entry.key
            node = entry.value
        elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        elif isinstance(node, SequenceNode) and (item := _item_called(step, node)) is not None:
            node = item
        else:
            break
    return node


def _item_called(name: PathStep, node: SequenceNode) -> Node | None:
    """Return the item that is this name: a list of names stands for a mapping."""
    names = (item for item in node.items if isinstance(item, ScalarNode) and item.text == name)
    return next(names, None)


def value_at(node: Node, *keys: str) -> Node | None:
    """Return what stands at these keys; a text that stands for a whole mapping is returned itself."""
    for key in keys:
        if isinstance(node, ScalarNode):
            return node
        inner = node.get(key) if isinstance(node, MappingNode) else None
        if inner is None:
            return None
        node = inner
    return node


def spot_in(node: ScalarNode, start: int, width: int) -> Spot:
    """Return where a character of a scalar stands in its file; the scalar itself when that is not clear."""
    cursor = _Cursor(node)
    for char in node.text[:start]:
        if not char.isspace() and not cursor.take(char):
            return node.spot
    if start < len(node.text) and not node.text[start].isspace():
        cursor.skip_white()
    return Spot(node.spot.source, cursor.line, cursor.column, width)


class _Cursor:
    """Follows the characters of a scalar through the lines it is written in. White space is not compared."""

    def __init__(self, node: ScalarNode) -> None:
        self.lines = node.spot.source.lines
        self.line, self.column = node.spot.line, node.spot.column
        self.style = ""
        if self.char == "&":
            self.column += len(self.rest.split(" ", 1)[0])
            self.skip_white()
        self.style = self.char if self.char and self.char in "'\"|>" else ""
        if self.style in ("'", '"'):
            self.column += 1
        elif self.style:
            self.line, self.column = self.line + 1, 1

    @property
    def rest(self) -> str:
        """What is left of the line."""
        is_inside = 1 <= self.line <= len(self.lines)
        return self.lines[self.line - 1][self.column - 1 :] if is_inside else ""

    @property
    def char(self) -> str:
        """The character at the cursor; none at the end of a line."""
        return self.rest[:1]

    def skip_white(self) -> None:
        """Go on to the next character that is not white space."""
        while self.line <= len(self.lines):
            rest = self.rest
            if self.style == '"' and rest.startswith("\\") and rest[1:2] in WHITE_ESCAPES:
                self.column += 2
            elif (self.style == '"' and rest.rstrip() == "\\") or not rest.strip():
                self.line, self.column = self.line + 1, 1
            elif rest[0].isspace():
                self.column += len(rest) - len(rest.lstrip())
            else:
                return

    def take(self, char: str) -> bool:
        """Go past a character of the scalar; False when the file has another one there."""
        self.skip_white()
        rest = self.rest
        if self.style == '"' and rest.startswith("\\"):
            self.column += 2 + ESCAPE_LENGTHS.get(rest[1:2], 0)
            return True
        if not rest.startswith(char):
            return False
        self.column += 2 if self.style == "'" and char == "'" else 1
        return True
