"""Code blocks between fences in markdown: where they begin and end, also in lists, in quotes and unfinished."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_OPENING = re.compile(r"(?P<prefix>[ \t]*(?:>[ \t]*)*)(?P<marker>`{3,}|~{3,})(?P<info>.*)")
_CLOSING = re.compile(r"[ \t]*(?:>[ \t]*)*(`{3,}|~{3,})[ \t]*")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+\-.#]+")


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """What a code block is opened with."""

    prefix: str
    """What stands before it: the indentation of a list, the marks of a quote."""
    marker: str
    info: str

    @property
    def opening(self) -> str:
        """The line that opens the block."""
        return f"{self.prefix}{self.marker}{self.info}"

    @property
    def closing(self) -> str:
        """The line that closes the block."""
        return f"{self.prefix}{self.marker}"

    @property
    def language(self) -> str:
        """The language that it names, in lower case; empty if none."""
        named = _LANGUAGE.match(self.info.strip())
        return named.group().lower() if named else ""

    def is_closed_by(self, line: str) -> bool:
        """Whether the line closes the block."""
        closing = _CLOSING.fullmatch(line)
        return closing is not None and closing.group(1).startswith(self.marker)

    def is_left_by(self, line: str) -> bool:
        """Whether the block ends before the line, because the quote that it stands in does."""
        return ">" in self.prefix and not line.lstrip(" \t").startswith(">")


class Prose(msgspec.Struct, frozen=True, kw_only=True):
    """Lines outside of code blocks."""

    text: str


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A code block."""

    fence: Fence
    text: str
    """The lines between its fences, as they were written."""

    @property
    def body(self) -> str:
        """The lines without what stands before each of them because of a list or a quote."""
        return "\n".join(_without(self.fence.prefix, line) for line in self.text.split("\n"))


def opened_by(line: str) -> Fence | None:
    """Return the fence that the line opens a code block with, outside of one."""
    match = _OPENING.fullmatch(line)
    # `` ```text``` `` on one line is code within a line.
    if match is None or (match["marker"][0] == "`" and "`" in match["info"]):
        return None
    return Fence(prefix=match["prefix"], marker=match["marker"], info=match["info"])


def blocks(markdown: str) -> Iterator[Prose | Code]:
    """Yield prose and code blocks in order. A block that is not closed goes on to the end."""
    fence: Fence | None = None
    lines: list[str] = []
    for line in markdown.split("\n"):
        if fence is not None and fence.is_left_by(line):
            yield Code(fence=fence, text="\n".join(lines))
            fence, lines = None, []
        if fence is not None:
            if fence.is_closed_by(line):
                yield Code(fence=fence, text="\n".join(lines))
                fence, lines = None, []
            else:
                lines.append(line)
        elif opening := opened_by(line):
            if lines:
                yield Prose(text="\n".join(lines))
            fence, lines = opening, []
        else:
            lines.append(line)
    if fence is not None:
        yield Code(fence=fence, text="\n".join(lines))
    elif lines:
        yield Prose(text="\n".join(lines))


def _without(prefix: str, line: str) -> str:
    if line.startswith(prefix):
        return line[len(prefix) :]
    shared = 0
    while shared < min(len(prefix), len(line)) and line[shared] == prefix[shared]:
        shared += 1
    return line[shared:]
