"""YAML nodes: what a file says, each value with the place it was written at, and what a plain text means.

Nodes are immutable and shared freely: an alias, a merged default and a diamond's sub-fleet point at the
same node, so every value keeps its own origin however it came to be where it is.

The meaning of unquoted text is narrower than YAML 1.1 on purpose: `yes`, `no`, `on` and `off` are words,
`12:30` and dates are texts, and a number with a leading zero stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from nightherd.model.problem import Place, Problem, Severity

SHOWN_LINE_LIMIT = 400
"""Source lines longer than this are not quoted in problems."""

LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
BASED = re.compile(r"0x[0-9a-fA-F]{1,64}|0o[0-7]{1,64}")
FRACTION = re.compile(
    r"[-+]?(?:\.[0-9]{1,100}|[0-9]{1,100}(?:\.[0-9]{0,100})?)(?:[eE][-+]?[0-9]{1,9})?"
)
BEYOND = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
NUMERIC_START = frozenset("+-.0123456789")

Plain = str | int | float | bool | None


class Source(msgspec.Struct, frozen=True, eq=False):
    """A file that was read: its absolute path, and its lines as the YAML parser counts them."""

    path: str
    lines: tuple[str, ...]

    @classmethod
    def of_text(cls, path: str, text: str) -> Source:
        """Return the source whose whole content is `text`."""
        return cls(path, tuple(LINE_BREAK.split(text)))

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


def resolve_plain(text: str) -> Plain:
    """The value that the unquoted `text` stands for."""
    if text in NULLS:
        return None
    truth = TRUTHS.get(text)
    if truth is not None:
        return truth
    if text[0] not in NUMERIC_START:
        return text
    if WHOLE.fullmatch(text):
        return int(text)
    if BASED.fullmatch(text):
        return int(text, 0)
    if FRACTION.fullmatch(text) and not has_leading_zero(text):
        return float(text)
    if BEYOND.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def has_leading_zero(text: str) -> bool:
    """Whether a digit follows a leading zero: `007` and `01.5` are names, not numbers."""
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
