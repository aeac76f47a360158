"""Answers in the size of a platform: messages that it takes as they are, and files for what is too long."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.split import SplitAnswer, split_answer, split_text
from nightherd.model.chat.text.written import WRITTEN

SMALLEST_ROOM = 200
CONTINUES = "\n\n…"


def split_for(platform: Platform, markdown: str) -> SplitAnswer:
    """Return the messages and files of an answer, in markdown: each fits when it is written in the platform's way."""
    limits, write = LIMITS[platform], WRITTEN[platform]
    room = limits.characters
    while True:
        split = split_answer(markdown, replace(limits, characters=room))
        fits = all(units(write(part)) <= limits.characters for part in split.parts)
        if fits or room <= SMALLEST_ROOM:
            return split
        room = max(SMALLEST_ROOM, room * 3 // 4)


def preview(platform: Platform, markdown: str) -> str:
    """Return as much of an answer that still comes in as one message holds."""
    limits, write = LIMITS[platform], WRITTEN[platform]
    room = limits.characters - len(CONTINUES)
    if units(markdown) <= room and units(write(markdown)) <= limits.characters:
        return markdown
    while True:
        first = next(iter(split_text(markdown, room)), "")
        shown = first + CONTINUES
        if units(write(shown)) <= limits.characters or room <= SMALLEST_ROOM:
            return shown
        room = max(SMALLEST_ROOM, room * 3 // 4)
