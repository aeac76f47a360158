"""The tree of an expression: what it is made of, each part with its place in the text.

Places count characters from 0; `end` is the place after the last character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Scalar = str | int | float | bool | None


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with an expression or template, and where in its text."""

    message: str
    start: int = 0
    width: int = 1
    hint: str | None = None
    word: str = ""
    """The name that is unknown, if one is."""
    known: tuple[str, ...] = ()
    """The names that `word` could have been."""


class Literal(msgspec.Struct, frozen=True):
    """A text, a number, true, false or null."""

    value: Scalar
    start: int
    end: int


class Step(msgspec.Struct, frozen=True):
    """One step of a path: a field's name, or an index of a list."""

    name: str | int
    start: int
    end: int


class Path(msgspec.Struct, frozen=True):
    """A name, and the fields and indexes that lead on from it."""

    root: str
    steps: tuple[Step, ...]
    start: int
    end: int

    @property
    def names(self) -> tuple[str | int, ...]:
        """The root and every step, without places."""
        return (self.root, *(step.name for step in self.steps))

    def __str__(self) -> str:
        return path_text(self.names)


class Minus(msgspec.Struct, frozen=True):
    """A negative number."""

    operand: Tree
    start: int
    end: int


class Not(msgspec.Struct, frozen=True):
    """The opposite of a condition."""

    operand: Tree
    start: int
    end: int


class Logic(msgspec.Struct, frozen=True):
    """Conditions joined by `and` or by `or`, evaluated from left to right."""

    operator: str
    operands: tuple[Tree, ...]
    start: int
    end: int


class Comparison(msgspec.Struct, frozen=True):
    """Two values compared: `==`, `!=`, `<`, `<=`, `>` or `>=`."""

    operator: str
    left: Tree
    right: Tree
    start: int
    end: int


class Membership(msgspec.Struct, frozen=True):
    """Whether a container has an element: `x in y`, `x not in y`, `y.contains(x)`."""

    element: Tree
    container: Tree
    is_negated: bool
    start: int
    end: int


Tree = Literal | Path | Minus | Not | Logic | Comparison | Membership


def path_text(names: tuple[str | int, ...]) -> str:
    """Return a path as it is written: `trigger.payload['x-y'][0]`."""
    text = str(names[0])
    for name in names[1:]:
        if isinstance(name, str) and IDENTIFIER.fullmatch(name):
            text += f".{name}"
        else:
            text += f"[{json.dumps(name, ensure_ascii=False)}]"
    return text


def paths_of(tree: Tree) -> Iterator[Path]:
    """Yield every path of an expression, from left to right."""
    match tree:
        case Path():
            yield tree
        case Literal():
            return
        case Minus() | Not():
            yield from paths_of(tree.operand)
        case Logic():
            for operand in tree.operands:
                yield from paths_of(operand)
        case Comparison():
            yield from paths_of(tree.left)
            yield from paths_of(tree.right)
        case Membership():
            yield from paths_of(tree.element)
            yield from paths_of(tree.container)
