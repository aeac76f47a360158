"""The lines of a text that is to be split: where they are, and which of them belong to code blocks."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.fences import Fence, opened_by

_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]|\*\*[^*]+\*\*[ \t]*$")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a text."""

    start: int
    end: int
    """Without its line break."""
    inside: Fence | None
    """The code block that is open where the line begins."""
    opens: Fence | None = None
    closes: bool = False
    is_blank: bool = False
    is_heading: bool = False
    is_item: bool = False


class Lines:
    """A text by its lines."""

    def __init__(self, text: str, limit: int) -> None:
        self.text = text
        self.all: list[Line] = []
        fence: Fence | None = None
        start = 0
        for content in text.split("\n"):
            if fence is not None and fence.is_left_by(content):
                fence = None
            line = _line(content, start, fence, limit)
            self.all.append(line)
            start = line.end + 1
            fence = None if line.closes else (line.opens or fence)
        self.open_at_end = fence
        self._starts = [line.start for line in self.all]

    def index(self, position: int) -> int:
        """Return the number of the line that the position is in."""
        return bisect_right(self._starts, position) - 1

    def is_closing(self, position: int) -> bool:
        """Whether all that follows on the line, or else the next line, closes a code block."""
        line = self.all[self.index(position)]
        return line.closes and position <= line.end

    def after(self, position: int) -> int:
        """Return where the next line begins."""
        return min(self.all[self.index(position)].end + 1, len(self.text))

    def end_of_block(self, opening: int) -> int:
        """Return where the code block ends that a line opens."""
        for line in self.all[opening + 1 :]:
            if line.closes:
                return line.end
            if line.inside is None:
                return line.start - 1
        return len(self.text)


def _line(content: str, start: int, fence: Fence | None, limit: int) -> Line:
    end = start + len(content)
    if fence is not None:
        closes = fence.is_closed_by(content)
        return Line(start=start, end=end, inside=fence, closes=closes, is_blank=not content.strip())
    opens = opened_by(content)
    if opens is not None and units(opens.opening) + units(opens.closing) + 2 > limit // 2:
        # Opened and closed again in every part, it would leave no room for code.
        opens = None
    return Line(
        start=start,
        end=end,
        inside=None,
        opens=opens,
        is_blank=not content.strip(),
        is_heading=_HEADING.match(content) is not None,
        is_item=_ITEM.match(content) is not None,
    )
