"""Tables of markdown, for platforms that show none: as aligned text, or as lists where they are too wide."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

_DELIMITERS = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?|[ \t]*\|[ \t]*:?-+:?[ \t]*\|?[ \t]*")  # fmt: skip
_CELL_END = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"\*\*|__|~~|`")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table: its first row is the header."""

    rows: tuple[tuple[str, ...], ...]

    @property
    def width(self) -> int:
        """How many columns of a terminal it takes as aligned text."""
        return sum(self._widths()) + 3 * (len(self.rows[0]) - 1)

    def aligned(self) -> str:
        """Return it as lines of one width, for a code block."""
        widths = self._widths()
        lines = [
            " │ ".join(
                _padded(cell, width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in self.rows
        ]
        lines.insert(1, "─┼─".join("─" * width for width in widths))
        return "\n".join(lines)

    def listed(self, bold: str) -> str:
        """Return it as a list item for each row, with its headers between `bold` marks."""
        header, *rows = self.rows
        items = [
            "; ".join(
                f"{bold}{name}{bold}: {cell}" if name else cell
                for name, cell in zip(header, row, strict=True)
                if cell
            )
            for row in rows
        ]
        return "\n".join(f"- {item}" for item in items if item)

    def _widths(self) -> list[int]:
        return [max(map(_width, column)) for column in zip(*self.rows, strict=True)]


def table_at(lines: Sequence[str], index: int) -> tuple[Table, int] | None:
    """Return the table that begins at a line, and the number of the line after it."""
    if index + 1 >= len(lines) or "|" not in lines[index]:
        return None
    if not _DELIMITERS.fullmatch(lines[index + 1]):
        return None
    header = _cells(lines[index])
    if len(header) != len(_cells(lines[index + 1])):
        return None
    rows = [header]
    end = index + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        cells = _cells(lines[end])
        # What is too much on a line is kept with its last cell.
        head, rest = cells[: len(header) - 1], cells[len(header) - 1 :]
        padding = [""] * (len(header) - len(head) - 1)
        rows.append([*head, *padding, " | ".join(rest)])
        end += 1
    return Table(rows=tuple(map(tuple, rows))), end


def _cells(line: str) -> list[str]:
    content = line.strip().removeprefix("|")
    if content.endswith("|") and not content.endswith("\\|"):
        content = content[:-1]
    return [_plain(cell) for cell in _CELL_END.split(content)]


def _plain(cell: str) -> str:
    """Return a cell without the marks that code blocks would show."""
    text = _MARKS.sub("", _LINK.sub(r"\1", _BREAK.sub(" ", cell.replace("\\|", "|"))))
    return " ".join(text.split())


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character)[0] == "M" or character == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
