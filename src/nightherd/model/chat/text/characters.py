"""Characters as people see them: how long a text is for a platform, and where it may be cut."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_JAMO = range(0x1100, 0x1200)
_REGIONAL = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_BASIC_PLANE_END = "\uffff"


def units(text: str) -> int:
    """Return how long platforms count a text at most: in UTF-16, where an emoji counts twice."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > _BASIC_PLANE_END for character in text)


def fitting(text: str, start: int, budget: int) -> int:
    """Return the end of the longest piece of the text from `start` that has at most `budget` units."""
    end = min(len(text), start + budget)
    while (excess := units(text[start:end]) - budget) > 0:
        # Every character has one or two units, so at least half of the excess has to go.
        end -= max(1, excess // 2)
    return end


def is_boundary(text: str, position: int) -> bool:
    """Whether a text may be cut there without taking apart what people see as one character."""
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if after.isascii():
        return not (before == "\r" and after == "\n")
    if before == _JOINER or after == _JOINER or unicodedata.category(after)[0] == "M":
        return False
    code = ord(after)
    if code in _SKIN_TONES or code in _TAGS:
        return False
    if code in _JAMO and ord(before) in _JAMO:
        return False
    return not (code in _REGIONAL and _flags_before(text, position) % 2 == 1)


def last_boundary(text: str, start: int, end: int) -> int:
    """Return the last place after `start` and up to `end` where the text may be cut; `end` if there is none."""
    position = end
    while position > start:
        if is_boundary(text, position):
            return position
        position -= 1
    return end


def _flags_before(text: str, position: int) -> int:
    """Count the regional letters directly before a position: two of them are one flag."""
    count = 0
    while position - count > 0 and ord(text[position - count - 1]) in _REGIONAL:
        count += 1
    return count
