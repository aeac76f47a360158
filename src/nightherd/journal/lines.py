"""Lines: a journal's bytes in blocks of whole lines, forwards and backwards.

Memory is bounded by a block, or by the longest line there is. Only `\\n` ends a line: JSON escapes it, so it
never stands inside one, whatever other separators a text contains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from nightherd.journal.codec import LINE_LIMIT, decode_block, decode_line
from nightherd.journal.fence import Fence
from nightherd.model.journal.event import Event
from nightherd.ports import BadLine

BLOCK = 32 * 1024
"""Read at once. Larger is slower: the events of a block live together, and the collector walks them."""


def blocks(
    descriptor: int, start: int, end: int | None = None
) -> Iterator[tuple[int, bytes] | BadLine]:
    """Whole lines from `start` (where a line begins) on, as (offset, bytes); what is unfinished is left out.

    A line beyond `LINE_LIMIT` comes as a `BadLine` and is never held in memory.
    """
    size = BLOCK
    while True:
        wanted = size if end is None else min(size, end - start)
        data = os.pread(descriptor, wanted, start)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield start, data if cut == len(data) else data[:cut]
            start += cut
            size = BLOCK
        elif len(data) < size:
            return
        elif size < LINE_LIMIT:
            size = min(4 * size, LINE_LIMIT)
        else:
            after = _next_line(descriptor, start + size)
            if after is None:
                return
            reason = f"longer than {LINE_LIMIT} bytes"
            yield BadLine(offset=start, length=after - start, reason=reason)
            start, size = after, BLOCK


def end_of(block: tuple[int, bytes] | BadLine) -> int:
    """Where the block ends, so where the next one begins."""
    if isinstance(block, BadLine):
        return block.offset + block.length
    return block[0] + len(block[1])


def split(block: bytes, offset: int) -> Iterator[tuple[int, Event | BadLine]]:
    """Each line of a block by itself, with its offset. Empty lines are left out."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", start) + 1 or len(block)
        line = block[start:end]
        if line.strip():
            yield offset + start, decode_line(line, offset + start)
        start = end


def admit(fence: Fence, block: tuple[int, bytes] | BadLine) -> list[Event]:
    """The events of the block that count."""
    if isinstance(block, BadLine):
        fence.admit(block)
        return []
    offset, data = block
    events = decode_block(data)
    if events is not None and fence.admit_plain(events):
        return events
    return [
        line
        for _, line in split(data, offset)
        if fence.admit(line) and not isinstance(line, BadLine)
    ]


def complete_until(descriptor: int, size: int) -> int:
    """Where the last complete line ends, looking backwards from `size`; 0 when there is none."""
    end = size
    while end > 0:
        start = max(0, end - BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _next_line(descriptor: int, start: int) -> int | None:
    while data := os.pread(descriptor, BLOCK, start):
        found = data.find(b"\n")
        if found >= 0:
            return start + found + 1
        start += len(data)
    return None
