"""Place: finding the end of a journal, or any number in it, without reading what lies before.

Where the fence stands depends on all lines before, in principle. In practice two neighbouring lines of one
writer settle it (`find_anchor`), so looking backwards, or jumping into the middle, needs only a few lines.
"""

from __future__ import annotations

import os
from collections import deque

from nightherd.journal.codec import LINE_LIMIT
from nightherd.journal.fence import Fence, find_anchor
from nightherd.journal.lines import BLOCK, admit, blocks, complete_until, split
from nightherd.model.journal.event import Event

STRETCH = 8 * BLOCK
"""Looked at in the middle: lines of up to 64 KiB are common, and two of them make a place certain."""


def tail(descriptor: int, size: int, count: int) -> tuple[Fence, list[Event]]:
    """The last `count` events that count among the first `size` bytes, and where the fence stands then.

    Reads backwards only as far as it must: to the first line beyond which everything is certain.
    """
    end = complete_until(descriptor, size)
    span = BLOCK
    while span < min(end, LINE_LIMIT):
        start = end - span
        found = _certain(os.pread(descriptor, span, start), start)
        if found is not None and len(found[1]) >= count:
            fence, events = found
            return fence, events[len(events) - count :]
        span *= 4
    fence, kept = Fence(), deque[Event](maxlen=count)
    for block in blocks(descriptor, 0, end):
        kept.extend(admit(fence, block))
    return fence, list(kept)


def seek(descriptor: int, size: int, after: int) -> tuple[Fence, int]:
    """An offset not far before the event that follows `after`, and where the fence stands there.

    Halves the file until what is left is about a block; reading on from there misses nothing.
    """
    epoch, seq, low, high = 0, 0, 0, size if after > 0 else 0
    while high - low > BLOCK:
        middle = (low + high) // 2
        anchor = anchor_after(descriptor, middle)
        if anchor is not None and anchor[1].seq <= after + 1:
            low, event = anchor
            epoch, seq = event.epoch, event.seq - 1
        else:
            high = middle
    return Fence(epoch=epoch, seq=seq), low


def anchor_after(descriptor: int, start: int) -> tuple[int, Event] | None:
    """The first line after an offset that surely counts, and where it begins; None when none near does.

    Most lines are short; only where they are not is a longer stretch needed to be certain.
    """
    return _anchor(descriptor, start, BLOCK) or _anchor(descriptor, start, STRETCH)


def _anchor(descriptor: int, start: int, size: int) -> tuple[int, Event] | None:
    data = os.pread(descriptor, size, start)
    cut = data.find(b"\n") + 1
    return find_anchor(split(data[cut : data.rfind(b"\n") + 1], start + cut)) if cut else None


def _certain(data: bytes, offset: int) -> tuple[Fence, list[Event]] | None:
    """The events of the data from the first certain one on; None when nothing in it is certain."""
    cut = data.find(b"\n") + 1
    anchor = find_anchor(split(data[cut:], offset + cut)) if cut else None
    if anchor is None:
        return None
    start, event = anchor
    fence = Fence(epoch=event.epoch, seq=event.seq - 1)
    return fence, admit(fence, (start, data[start - offset :]))
