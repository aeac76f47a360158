"""Index: which places of a journal are worth remembering, so that any message is found in constant time.

One entry per 64 messages, derived from the journal and rebuildable from it. Where entries are kept is
another room's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from nightherd.model.event import ErrorEvent, Event

STRIDE = 64
"""Messages per entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """Where the first line of a message stands: its number and its offset in bytes."""

    message: int
    seq: int
    offset: int


def entry_due(event: Event, offset: int, *, indexed: int) -> IndexEntry | None:
    """The entry that the line at `offset` calls for, given the last message that has one (0 for none).

    Due at the first line of messages 1, 65, 129, ...; of a later one when that is missing.
    """
    if isinstance(event, ErrorEvent) or event.message is None:
        return None
    if _stretch(event.message) <= _stretch(indexed):
        return None
    return IndexEntry(message=event.message, seq=event.seq, offset=offset)


def _stretch(message: int) -> int:
    return (message - 1) // STRIDE
