"""Where a long text is cut: between paragraphs, else list items, lines, sentences, words, and at last characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from nightherd.model.chat.text.characters import fitting, is_boundary, last_boundary, units
from nightherd.model.chat.text.fences import Fence
from nightherd.model.chat.text.lines import Line, Lines


class Rank(IntEnum):
    """How good a place is, the best first."""

    PARAGRAPH = 0
    BLOCK = 1
    """Before a code block that fits into one message."""
    ITEM = 2
    LINE = 3
    SENTENCE = 4
    WORD = 5
    CHARACTER = 6
    NOWHERE_ELSE = 7


LEAST_FULL = {
    Rank.PARAGRAPH: 0.5,
    Rank.BLOCK: 0.25,
    Rank.ITEM: 0.5,
    Rank.LINE: 0.4,
    Rank.SENTENCE: 0.3,
    Rank.WORD: 0.1,
    Rank.CHARACTER: 0.0,
    Rank.NOWHERE_ELSE: 0.0,
}
"""How full a message has to be for a cut at such a place: a better place is not worth a nearly empty message."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_]*(?=\s)|[。！？]")
_SPACE = re.compile(r"[ \t]+")
_KEPT_WHOLE = re.compile(
    r"`[^`\n]+`|\*\*[^*\n]+\*\*|\[[^\]\n]*\]\([^)\s]*\)|<[^<>\n]+>|\[[^\]\n]*\]"
)
"""Code, links and bold text within a line."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A place to cut: what is between end and start is left out."""

    end: int
    start: int
    fence: Fence | None = None
    """The code block that is open there."""
    rank: Rank = Rank.NOWHERE_ELSE


def best_cut(lines: Lines, position: int, room: int) -> Cut:
    """Return where to cut a text after `position`, so that what comes before fits into `room`."""
    window = fitting(lines.text, position, room)
    cuts = [
        cut
        for cut in _cuts(lines, position, window, room)
        if cut.end > position and _fits(lines.text, position, cut, room)
    ]
    for rank in Rank:
        least = position + LEAST_FULL[rank] * (window - position)
        good = [cut for cut in cuts if cut.rank == rank and cut.end >= least]
        if good:
            return max(good, key=_end)
    return max(cuts, key=_end)


def _end(cut: Cut) -> int:
    return cut.end


def _fits(text: str, position: int, cut: Cut, room: int) -> bool:
    closing = units(cut.fence.closing) + 1 if cut.fence else 0
    return units(text[position : cut.end]) + closing <= room


def _cuts(lines: Lines, position: int, window: int, room: int) -> Iterator[Cut]:
    # With the line after the window: the cut before it may be at its very end.
    first, last = lines.index(position), lines.index(min(window + 1, len(lines.text)))
    heading = False
    counted, used = position, 0
    for index in range(first, last + 1):
        line = lines.all[index]
        if index > first:
            yield _between(lines, index, room, after_heading=heading)
        if not line.is_blank:
            heading = line.is_heading
        if line.opens is None and not line.closes:
            begin = max(position, line.start)
            counted, used = begin, used + units(lines.text[counted:begin])
            yield from _within(lines.text, line, begin, min(window, line.end), room - used)


def _between(lines: Lines, index: int, room: int, *, after_heading: bool) -> Cut:
    """Return the cut before a line."""
    before, line = lines.all[index - 1], lines.all[index]
    cut = Cut(end=before.end, start=line.start, fence=line.inside)
    if line.inside is not None:
        # Nothing of the block would be in the part that opens it.
        rank = Rank.NOWHERE_ELSE if before.opens else (Rank.ITEM if line.is_blank else Rank.LINE)
        if line.is_blank:
            cut = Cut(end=before.end, start=min(line.end + 1, len(lines.text)), fence=line.inside)
    elif after_heading:
        rank = Rank.WORD
    elif line.opens:
        size = units(lines.text[line.start : lines.end_of_block(index)])
        rank = Rank.BLOCK if size <= room else (Rank.PARAGRAPH if before.is_blank else Rank.LINE)
    elif line.is_blank or before.is_blank or before.closes:
        rank = Rank.PARAGRAPH
    else:
        rank = Rank.ITEM if line.is_item else Rank.LINE
    return Cut(end=cut.end, start=cut.start, fence=cut.fence, rank=rank)


def _within(text: str, line: Line, begin: int, end: int, room: int) -> Iterator[Cut]:
    """Yield the cuts within a line, or the part of it that fits into the `room` that is left at its `begin`."""
    fence = line.inside
    closing = units(fence.closing) + 1 if fence else 0
    furthest = min(end, fitting(text, begin, max(2, room - closing)))
    if begin < furthest < line.end:
        boundary = last_boundary(text, begin, furthest)
        yield Cut(end=boundary, start=boundary, fence=fence, rank=Rank.CHARACTER)
    if fence is None:
        # What is kept whole may end after the part that fits.
        whole = [
            match.span() for match in _KEPT_WHOLE.finditer(text, begin, min(line.end, end + room))
        ]
        for match in _SENTENCE_END.finditer(text, begin, min(end + 1, line.end)):
            if is_boundary(text, match.end()) and not _is_kept(match.end(), whole):
                yield Cut(end=match.end(), start=match.end(), rank=Rank.SENTENCE)
    else:
        whole = []
    for match in _SPACE.finditer(text, begin, min(end + 1, line.end)):
        if match.start() > begin and not _is_kept(match.start(), whole):
            start = match.end() if fence is None else match.start()
            if is_boundary(text, start):
                yield Cut(end=match.start(), start=start, fence=fence, rank=Rank.WORD)


def _is_kept(position: int, whole: list[tuple[int, int]]) -> bool:
    return any(start < position < end for start, end in whole)
