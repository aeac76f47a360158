"""Messages: finding where one of them ends, without reading what lies before or behind.

The recorder numbers messages in order: a line belongs to the one after those that have ended. So among
the lines that count the numbers never fall, and halving the file finds any of them (decision 0007).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.journal.fence import Fence
from nightherd.journal.lines import BLOCK, admit, blocks, split
from nightherd.journal.place import anchor_after
from nightherd.model.journal.event import ErrorEvent, Event, is_message
from nightherd.ports import BadLine


def message_of(event: Event) -> int | None:
    """The message of the conversation that the event is part of."""
    if isinstance(event, ErrorEvent) or not is_message(event):
        return None
    return event.message


def ended_message(event: Event) -> int | None:
    """The message that ends with this event."""
    if isinstance(event, ErrorEvent) or not event.end:
        return None
    return message_of(event)


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A line that counts, where it begins, and the message it is part of."""

    offset: int
    epoch: int
    seq: int
    message: int


def seq_of_message(descriptor: int, size: int, message: int) -> int | None:
    """The number of the event that ends `message`, among the first `size` bytes; None when none does.

    A journal in which the number is passed over (the line is damaged, or numbers were not given in order) is
    read as a whole before None is said.
    """
    low, fence = _before(descriptor, size, message)
    for event in _events(descriptor, low, size, fence):
        if ended_message(event) == message:
            return event.seq
        if (found := message_of(event)) is not None and found > message:
            break
    else:
        return None
    found_at = (
        event.seq
        for event in _events(descriptor, 0, size, Fence())
        if ended_message(event) == message
    )
    return next(found_at, None)


def _before(descriptor: int, size: int, message: int) -> tuple[int, Fence]:
    """An offset not far before the end of the message, and where the fence stands there."""
    low, high, fence = 0, size, (0, 0)
    while high - low > BLOCK:
        middle = (low + high) // 2
        place = _first_numbered(descriptor, middle, high)
        if place is not None and place.message <= message:
            low, fence = place.offset, (place.epoch, place.seq - 1)
        else:
            high = middle
    epoch, seq = fence
    return low, Fence(epoch=epoch, seq=seq)


def _first_numbered(descriptor: int, start: int, end: int) -> _Place | None:
    """The first line between the offsets that surely counts and is part of a message."""
    anchor = anchor_after(descriptor, start)
    if anchor is None or anchor[0] >= end:
        return None
    offset, event = anchor
    fence = Fence(epoch=event.epoch, seq=event.seq - 1)
    # Nearly always the anchor itself. What a runtime streams is in no message, and may be long.
    for block in blocks(descriptor, offset, end):
        if isinstance(block, BadLine):
            continue
        for place, line in split(block[1], block[0]):
            if not fence.admit(line) or isinstance(line, BadLine):
                continue
            if (message := message_of(line)) is not None:
                return _Place(offset=place, epoch=line.epoch, seq=line.seq, message=message)
    return None


def _events(descriptor: int, start: int, end: int, fence: Fence) -> Iterator[Event]:
    for block in blocks(descriptor, start, end):
        yield from admit(fence, block)
